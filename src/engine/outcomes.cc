// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/outcomes.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <new>

#include "src/base/file.h"
#include "src/base/knobs.h"
#include "src/base/plain_text.h"
#include "src/engine/agreement.h"
#include "src/engine/routes.h"
#include "src/engine/rules.h"
#include "src/engine/statistics.h"

namespace sluice {
namespace {

constexpr std::string_view first_line =
    "# Choices of Sluice, found by trials (SLUICE_CHOICE_FILE); rewritten when a job ends\n";

std::string header_of(const Outcomes::Machine& machine) {
  char settings[17];
  std::snprintf(settings, sizeof settings, "%016" PRIx64, machine.settings);
  return std::string(first_line) + "# Sluice " + machine.version + ", format 2, " +
         std::to_string(machine.ranks) + " ranks, settings " + settings + ", " + machine.mpi + "\n";
}

Rule::Bounds bytes_of(uint32_t octave) {
  if (octave == 0) return {0, 0};
  const size_t low = size_t{1} << (octave - 1);
  return {low, low + (low - 1)};
}

// "allreduce of 4k to 8k in order".
std::string describe(const Outcomes::Class& of) {
  std::string text(to_string(of.collective));
  if (of.octave > 0) {
    const auto [low, high] = bytes_of(of.octave);
    text += " of " + format_size(low);
    if (high == ~size_t{0}) {
      text += " or more";
    } else if (high > low) {
      text += " to " + format_size(high + 1);
    }
  }
  if (of.ordered) text += " in order";
  if (of.ragged) text += " with uneven blocks";
  if (of.challengers.are_on_device()) text += " on devices";
  return text;
}

std::string in_microseconds(double nanoseconds) {
  if (nanoseconds == 0) return "not known";
  return significant(nanoseconds / 1000, 3) + " us";
}

std::string describe(const Outcomes::Outcome& outcome) {
  const bool is_other = !outcome.is_mpis() && outcome.choice != leave_to_rules;
  if (outcome.from_file) {
    const bool is_known = outcome.is_mpis() || is_other;
    return (is_known ? routes::describe(outcome.choice) : "Sluice") +
           " (SLUICE_CHOICE_FILE says so)";
  }
  const std::string by_rules = outcome.ruled + " " + in_microseconds(outcome.by_rules),
                    by_mpi = in_microseconds(outcome.by_mpi);
  const std::string windows =
      "; " + std::to_string(outcome.windows) + (outcome.windows == 1 ? " window)" : " windows)");
  if (outcome.is_mpis()) return "MPI (" + by_mpi + ", Sluice's " + by_rules + windows;
  if (is_other) {
    return routes::describe(outcome.choice) + " (" + in_microseconds(outcome.by_other) + ", " +
           by_rules + ", MPI " + by_mpi + windows;
  }
  return "Sluice's " + outcome.ruled + " (" + in_microseconds(outcome.by_rules) + ", MPI " +
         by_mpi + windows;
}

// "*" of calls on the host; else such as "ipc+mpi".
std::string word_of(const Challengers& challengers) {
  const auto [ipc, nccl] = challengers.carriers;
  if (!challengers.are_on_device()) return "*";
  return std::string(ipc ? "ipc" : "") + (ipc && nccl ? "+" : "") + (nccl ? "nccl" : "") +
         (challengers.mpi ? "+mpi" : "");
}

std::optional<Challengers> parse_challengers(std::string_view word) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const bool ipc = bits & 1, nccl = bits & 2, mpi = bits & 4;
    const Challengers each{{ipc, nccl}, mpi};
    if (!each.are_none() && word == word_of(each)) return each;
  }
  return {};
}

std::string line_of(const Outcomes::Class& of, const Outcomes::Outcome& outcome) {
  const Rule::Bounds bytes = bytes_of(of.octave);
  std::string range = format_size(bytes.low);
  if (bytes.high > bytes.low) range += "-" + format_size(bytes.high);
  return std::string(to_string(of.collective)) + " " + word_of(of.challengers) +
         " ranks:" + std::to_string(of.ranks) + " hosts:" + std::to_string(of.hosts) +
         " per_host:" + std::to_string(of.per_host) + " bytes:" + range +
         " ordered:" + (of.ordered ? "1" : "0") + " ragged:" + (of.ragged ? "1" : "0") +
         " exact:" + (of.exact ? "1" : "0") + " -> " + outcome.choice + "  # " + describe(outcome) +
         "\n";
}

// The class that a rule is about; nothing if that is not just one.
std::optional<Outcomes::Class> class_of(const Rule& rule) {
  const auto is_one = [](const Rule::Bounds& bounds, size_t most) {
    return bounds.low == bounds.high && bounds.low <= most;
  };
  constexpr size_t most_ranks = ~Rank{0};
  const auto octave = static_cast<uint32_t>(std::bit_width(rule.bytes.low));
  const Rule::Bounds bytes = bytes_of(octave);
  const auto challengers = parse_challengers(rule.transport);
  if (!challengers || !rule.collective || !is_one(rule.ranks, most_ranks) ||
      !is_one(rule.hosts, most_ranks) || !is_one(rule.per_host, most_ranks) ||
      !is_one(rule.ordered, 1) || !is_one(rule.ragged, 1) || !is_one(rule.exact, 1) ||
      rule.bytes.low != bytes.low || rule.bytes.high != bytes.high)
    return {};
  return Outcomes::Class{.collective = *rule.collective,
                         .ranks = static_cast<Rank>(rule.ranks.low),
                         .hosts = static_cast<uint32_t>(rule.hosts.low),
                         .per_host = static_cast<Rank>(rule.per_host.low),
                         .octave = octave,
                         .ordered = rule.ordered.low == 1,
                         .ragged = rule.ragged.low == 1,
                         .exact = rule.exact.low == 1,
                         .challengers = *challengers};
}

// Whether trials of the class may end so.
bool is_choice(const Outcomes::Class& of, std::string_view choice) {
  const auto& [carriers, mpi] = of.challengers;
  const Algorithm* const route = routes::find(choice);
  if (choice == leave_to_rules) return true;
  if (!route) return !of.challengers.are_on_device() && find_algorithm(of.collective, choice);
  return route == &routes::mpi ? mpi : carriers[route == &routes::nccl];
}

// The class that a line is about, and its choice.
Result<std::pair<Outcomes::Class, std::string>> parse_line(std::string_view line) {
  const auto rule = parse_rule(line);
  if (!rule.ok()) return rule.status();
  const auto of = class_of(*rule);
  if (!of || !is_choice(*of, rule->algorithm)) {
    return Status{Code::invalid, "trials write no such rule"};
  }
  return std::pair(*of, rule->algorithm);
}

}  // namespace

Outcomes::File Outcomes::read(const std::string& path, const Machine& machine, Status* status) {
  header_ = header_of(machine);
  std::string text;
  if (file_exists(path)) {
    Result<std::string> read = read_file(path);
    if (!read.ok()) {
      *status = read.status();
      return File::foreign;
    }
    text = std::move(*read);
  }
  if (!text.empty() && !text.starts_with(first_line)) {
    *status = {Code::invalid, path + " is no file of choices"};
    return File::foreign;
  }
  path_ = path;
  if (text.empty()) return File::none;
  if (!text.starts_with(header_)) {
    const size_t end = std::min(text.find('\n', first_line.size()), text.size());
    *status = {Code::invalid, path + " holds for another job: " +
                                  text.substr(first_line.size(), end - first_line.size())};
    return File::other;
  }
  const Status left_out = parse(std::string_view(text).substr(header_.size()));
  if (!left_out.ok()) *status = left_out.with(path);
  digest_ = std::max<uint64_t>(::sluice::digest(text), 1);
  return File::used;
}

// An error tells of the first line that is left out, and how many are.
Status Outcomes::parse(std::string_view lines) {
  Status first;
  int left_out = 0;
  for (int number = 3; !lines.empty(); ++number) {
    const size_t length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    auto line = parse_line(lines.substr(0, length));
    if (line.ok()) {
      read_.emplace(line->first, Known{line->second, std::string(lines.substr(0, length))});
    } else if (++left_out == 1) {
      first = line.status().with("line " + std::to_string(number));
    }
    lines.remove_prefix(length);
  }
  const std::string number = std::to_string(left_out) + (left_out == 1 ? " line" : " lines");
  return left_out == 0 ? Status() : first.with(number + " left out");
}

std::string_view Outcomes::find(const Class& of) const {
  const auto found = read_.find(of);
  return found == read_.end() ? std::string_view() : found->second.choice;
}

void Outcomes::note(const std::string& communicator, const TeamId& team, const Class& of,
                    const Outcome& outcome) try {
  const std::lock_guard lock(mutex_);
  if (!communicator.empty()) by_communicator_[{communicator, of}] = outcome;
  if (outcome.from_file) return;
  const auto [at, is_new] = found_.try_emplace(of, Found{team, outcome, false});
  if (is_new) return;
  Found& found = at->second;
  const bool is_same_team = !(found.team < team) && !(team < found.team);
  if (!is_same_team && found.outcome.choice != outcome.choice) found.differs = true;
  found.team = team;
  found.outcome = outcome;
} catch (const std::bad_alloc&) {
}

std::string Outcomes::report() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  size_t lines = 0;
  for (const bool by_mpi : {true, false}) {
    for (const auto& [key, outcome] : by_communicator_) {
      if (outcome.is_mpis() != by_mpi || ++lines > most_lines) continue;
      const auto& [communicator, of] = key;
      text += shorten_name(communicator) + ": " + describe(of) + ": " + describe(outcome) + "\n";
    }
  }
  const size_t all = by_communicator_.size();
  if (all > most_lines) text += "and " + std::to_string(all - most_lines) + " more\n";
  return text;
}

std::string Outcomes::text() const {
  const std::lock_guard lock(mutex_);
  if (found_.empty()) return {};
  std::map<Class, std::string> all;
  for (const auto& [of, known] : read_) all[of] = known.line;
  for (const auto& [of, found] : found_) {
    all.erase(of);
    if (!found.differs) all[of] = line_of(of, found.outcome);
  }
  std::string text = header_;
  for (const auto& [of, line] : all) text += line;
  return text;
}

Status Outcomes::write() const {
  if (path_.empty()) return {};
  const std::string now = text();
  return now.empty() ? Status() : replace_file(path_, now);
}

}  // namespace sluice
