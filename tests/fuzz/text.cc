// SPDX-License-Identifier: BSD-3-Clause
//
// Text that people and files give: rules, tuning logs, settings, single values.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/setting_sources.h"
#include "src/engine/delay.h"
#include "src/engine/rules.h"
#include "src/tool/tuning.h"
#include "tests/fuzz/targets.h"
#include "transports/interface_list.h"

namespace sluice::fuzz {
namespace {

std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// A file of that content, which only this user may write, while it lives.
class File {
 public:
  explicit File(std::span<const std::byte> content) : fd_(memfd_create("input", MFD_CLOEXEC)) {
    must(fd_ >= 0 && fchmod(fd_, 0600) == 0, "a file in memory");
    const auto size = static_cast<ssize_t>(content.size());
    must(write(fd_, content.data(), content.size()) == size, "room for the input");
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

constexpr Collective collectives[] = {Collective::allreduce, Collective::allgatherv,
                                      Collective::broadcast, Collective::barrier};

}  // namespace

// What parses serves choices: each is MPI, or an algorithm of that collective which can serve.
void fuzz_rules(std::span<const std::byte> input) {
  const auto rules = parse_rules(text_of(input));
  if (!rules.ok()) must(!rules.status().message().empty(), "an error says why");
  const File file(input);
  Knobs knobs;
  knobs.rules = file.path();
  const auto selector = Selector::make(knobs);
  must(selector.ok() == rules.ok(), "a file is its text");
  if (!selector.ok()) return;
  for (const Collective collective : collectives) {
    for (const char* const transport : {"shm", "tcp"}) {
      const Situation situation{.collective = collective,
                                .transport = transport,
                                .ranks = 4,
                                .shm = transport[0] == 's',
                                .round_trip = 100};
      const Choices choices = selector->choices(situation);
      for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1} << 16, ~size_t{0}}) {
        const Algorithm* const algorithm = choices.at(bytes);
        must(algorithm == selector->choose(situation, bytes), "a table is the rules");
        if (!algorithm) continue;
        must(algorithm->collective == collective, "an algorithm of that collective");
        must(selector->is_able(*algorithm, situation), "it can serve");
      }
    }
  }
}

void fuzz_tuning_log(std::span<const std::byte> input) {
  const auto log = parse_tuning_log(text_of(input));
  if (!log.ok()) return must(!log.status().message().empty(), "an error says why");
  const Tuning tuning = make_tuning(*log, 0.05);
  must(tuning.winners.size() == log->points.size(), "every point has a winner");
  (void)to_text(*log, tuning, "# header\n");
}

// As the site's file, the user's, and the one that SLUICE_CONFIG names.
void fuzz_settings(std::span<const std::byte> input) {
  const File file(input);
  const auto parsed = parse_settings("sluice.conf", text_of(input));
  if (parsed.ok()) {
    std::set<std::string> names;
    for (const auto& line : parsed->lines) must(names.insert(line.name).second, "no name twice");
  } else {
    must(parsed.status().message().starts_with("sluice.conf:"), "an error names the line");
  }
  for (const bool is_named : {false, true}) {
    static std::string path;
    path = file.path();
    const auto variables = [&](const char* name) -> const char* {
      return is_named && std::string_view(name) == "SLUICE_CONFIG" ? path.c_str() : nullptr;
    };
    const SettingSources sources = find_settings(variables, path, false);
    Knobs knobs;
    const Status read = read_knobs(sources, &knobs);
    must(read.ok() || !read.message().empty(), "an error says why");
    must(parsed.ok() || is_named == !read.ok() || !sources.unused.empty() || !read.ok(),
         "a file that is no settings is said to be none");
    unknown_knobs(sources.files);
    (void)knob_values(sources);
  }
}

void fuzz_values(std::span<const std::byte> input) {
  Input from(input);
  const uint8_t kind = from.byte();
  const std::string text(text_of(from.rest()));
  size_t bytes = 0;
  bool on = false;
  IpAddress address;
  switch (kind % 5) {
    case 0: {
      const auto list = InterfaceList::parse(text);
      if (!list.ok()) must(!list.status().message().empty(), "an error says why");
      break;
    }
    case 1:
      parse_size(text, &bytes);
      break;
    case 2:
      parse_switch(text, &on);
      break;
    case 3:
      if (parse_ip(text, &address)) {
        IpAddress again;
        must(parse_ip(address.text(), &again) && again == address, "an address is its text");
      }
      break;
    default: {
      const auto delay = Delay::parse(text);
      if (!delay.ok()) return must(!delay.status().message().empty(), "an error says why");
      must(delay->empty() || delay->pretended("flat").count() >= 0, "no time is below zero");
    }
  }
}

}  // namespace sluice::fuzz
