// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/tune.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "collectives/algorithm.h"
#include "src/base/file.h"
#include "src/base/knobs.h"
#include "src/tool/build.h"
#include "src/tool/preload.h"
#include "src/tool/run.h"
#include "src/tool/study.h"
#include "src/tool/text.h"
#include "src/tool/tuning.h"
#include "src/tool/winners.h"

namespace sluice {
namespace {

std::string log_of(const TuneOptions& options) {
  return options.log.empty() ? options.output + ".log" : options.log;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// "4:4m": powers of two, and 1.5 times each of them; or a list: "8,100,64k".
Result<std::vector<size_t>> read_sizes(const std::string& text) {
  const Status wrong(Code::invalid, "--sizes " + text + ": it takes MIN:MAX, as in 4:4m, or sizes");
  std::vector<size_t> sizes;
  const std::vector<std::string> ends = split(text, ':');
  for (const std::string& word : split(text, ends.size() == 2 ? ':' : ',')) {
    size_t size = 0;
    if (!parse_size(word, &size) || size < 4) return wrong;
    sizes.push_back(size);
  }
  if (ends.size() == 2) {
    const size_t least = sizes[0], most = sizes[1];
    if (least > most) return wrong;
    sizes.clear();
    for (size_t power = 4; power <= most; power *= 2) {
      for (const size_t size : {power, power / 2 * 3}) {
        if (size >= least && size <= most && size % 4 == 0) sizes.push_back(size);
      }
    }
  }
  std::ranges::sort(sizes);
  if (sizes.empty()) return wrong;
  return sizes;
}

// "allreduce=flat,split,...,mpi": all candidates of one collective.
std::string candidates_of(Collective collective) {
  std::string words = std::string(to_string(collective)) + "=";
  for (const Algorithm& algorithm : algorithms(collective)) {
    words += std::string(algorithm.name) + ",";
  }
  return words + "mpi";
}

Status add_candidates(const std::vector<std::string>& names, std::vector<std::string>* command) {
  std::vector<Collective> wanted;
  for (const std::string& name : names) {
    Collective collective;
    if (!parse(name, &collective)) {
      return {Code::invalid,
              "--collectives " + name + ": no such collective; there are " + collective_names()};
    }
    wanted.push_back(collective);
  }
  for (uint32_t i = 0; names.empty() && i < collective_count; ++i) {
    wanted.push_back(static_cast<Collective>(i));
  }
  command->emplace_back("--candidates");
  for (const Collective collective : wanted) command->push_back(candidates_of(collective));
  return {};
}

template <typename T>
std::string joined(const std::vector<T>& numbers) {
  std::string text;
  for (const T number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// Execs the measuring program, which on rank 0 then execs `sluice tune --make`.
Status measure(const TuneOptions& options) {
  const Result<std::string> program = find_program("osu_tune");
  if (!program.ok()) return program.status();
  const Result<std::vector<size_t>> sizes = read_sizes(options.sizes);
  if (!sizes.ok()) return sizes.status();
  std::vector<std::string> command{*program, "--log", log_of(options)};
  if (Status status = add_candidates(options.collectives, &command); !status.ok()) return status;
  command.insert(command.end(), {"--sizes", joined(*sizes), "--time", short_number(options.seconds),
                                 "--rounds", std::to_string(options.rounds)});
  for (const std::string& file : {options.output, options.svg}) {
    if (!file.empty()) command.insert(command.end(), {"--writes", file});
  }
  if (!options.ranks.empty()) {
    command.insert(command.end(), {"--ranks", joined(options.ranks)});
  }
  command.insert(command.end(), {"--", own_file(), "tune", "--make", "-o", options.output, "--log",
                                 log_of(options), "--margin", short_number(options.margin)});
  if (!options.svg.empty()) command.insert(command.end(), {"--svg", options.svg});
  setenv("SLUICE_RULES", "default", 1);  // compare with the built-in rules, and with nothing else
  setenv("SLUICE_CHOICE", "rules", 1);
  setenv("SLUICE_LOG", "error", 0);
  PreloadOptions preload;
  preload.library = options.library;
  preload.command = command;
  return run(preload);
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return {Code::invalid, path + " cannot be written: " + strerror(errno)};
}

std::string header() {
  char day[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M", std::localtime(&now));
  return "# Rules for SLUICE_RULES, made by sluice tune of Sluice " + build_info().version +
         " on " + day + ".\n";
}

Status make(const TuneOptions& options) {
  const Result<std::string> text = read_file(log_of(options));
  if (!text.ok()) return text.status();
  const Result<TuningLog> log = parse_tuning_log(*text);
  if (!log.ok()) return log.status().with(log_of(options));
  const TuningLog& measured = *log;
  if (measured.points.empty()) return {Code::invalid, log_of(options) + " has no points"};
  const Tuning tuning = make_tuning(measured, options.margin / 100);
  const std::string rules = to_text(measured, tuning, header());
  if (const auto parsed = parse_rules(rules); !parsed.ok()) return parsed.status();
  if (Status status = write_file(options.output, rules); !status.ok()) return status;
  if (!options.svg.empty()) {
    const Status status = write_file(options.svg, draw_winners(measured, tuning));
    if (!status.ok()) return status;
  }
  printf(
      "%s%s has %zu rule%s. MPI's own collective keeps %zu of %zu points. To use it:\n"
      "  export SLUICE_RULES=%s\n",
      winners_table(measured, tuning).c_str(), options.output.c_str(), tuning.rules.size(),
      tuning.rules.size() == 1 ? "" : "s", tuning.mpi_wins, measured.points.size(),
      options.output.c_str());
  return {};
}

}  // namespace

Status tune(const TuneOptions& options) { return options.make ? make(options) : measure(options); }

}  // namespace sluice
