// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/rules.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "src/base/file.h"
#include "src/base/plain_text.h"

namespace sluice {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && is_space(line[at])) ++at;
    const size_t begin = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

// Parses "A-B", "A-", "-B" or "A", with sizes as bounds. False if it is none of these.
bool parse_range(std::string_view text, size_t* low, size_t* high) {
  const size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  if (!first.empty() && !parse_size(std::string(first), low)) return false;
  if (dash == std::string_view::npos) {
    *high = *low;
    return !first.empty();
  }
  const std::string_view second = text.substr(dash + 1);
  if (!second.empty() && !parse_size(std::string(second), high)) return false;
  return *low <= *high && (!first.empty() || !second.empty());
}

struct Condition {
  std::string_view name;
  Rule::Bounds Rule::*bounds;
  size_t (*value)(const Situation& of);  // nullptr: the call's bytes
};
constexpr Condition conditions[] = {
    {"ranks", &Rule::ranks, [](const Situation& of) { return size_t{of.ranks}; }},
    {"hosts", &Rule::hosts, [](const Situation& of) { return size_t{count_hosts(of.hosts)}; }},
    {"per_host", &Rule::per_host,
     [](const Situation& of) { return size_t{most_per_host(of.hosts)}; }},
    {"groups", &Rule::groups, [](const Situation& of) { return size_t{count_hosts(of.groups)}; }},
    {"per_processor", &Rule::per_processor,
     [](const Situation& of) { return size_t{of.per_processor}; }},
    {"round_trip", &Rule::round_trip, [](const Situation& of) { return size_t{of.round_trip}; }},
    {"bytes", &Rule::bytes, nullptr},
    {"ordered", &Rule::ordered, [](const Situation& of) { return size_t{of.ordered}; }},
    {"ragged", &Rule::ragged, [](const Situation& of) { return size_t{of.ragged}; }},
    {"exact", &Rule::exact, [](const Situation& of) { return size_t{of.exact}; }},
};

// " [ranks:A-B] [hosts:A-B]".
std::string list_conditions() {
  std::string text;
  for (const Condition& each : conditions) text += " [" + std::string(each.name) + ":A-B]";
  return text;
}

Status parse_condition(std::string_view word, Rule* rule) {
  const std::string_view name = word.substr(0, word.find(':'));
  const std::string_view range = name.size() < word.size() ? word.substr(name.size() + 1) : "";
  const auto* const found = std::ranges::find(conditions, name, &Condition::name);
  if (found != std::end(conditions)) {
    Rule::Bounds& bounds = rule->*found->bounds;
    if (parse_range(range, &bounds.low, &bounds.high)) return {};
  }
  return {Code::invalid, "'" + std::string(word) + "' is no condition:" + list_conditions()};
}

Status check_names(const Rule& rule) {
  if (rule.transport != "*" && rule.transport != "shm" && rule.transport != "tcp") {
    return {Code::invalid, "'" + rule.transport + "' is no transport: shm, tcp or *"};
  }
  if (rule.algorithm == leave_to_mpi || rule.algorithm == leave_to_rules) return {};
  const bool known = std::ranges::any_of(algorithms(), [&](const Algorithm& algorithm) {
    return rule.algorithm == algorithm.name &&
           (!rule.collective || *rule.collective == algorithm.collective);
  });
  if (known) return {};
  const std::string whose =
      rule.collective ? std::string(to_string(*rule.collective)) : "no collective";
  return {Code::invalid, rule.collective ? whose + " has no algorithm '" + rule.algorithm + "'"
                                         : whose + " has an algorithm '" + rule.algorithm + "'"};
}

bool matches(const Rule& rule, const Situation& situation, size_t bytes) {
  return (!rule.collective || *rule.collective == situation.collective) &&
         (rule.transport == "*" || rule.transport == situation.transport) &&
         std::ranges::all_of(conditions, [&](const Condition& each) {
           return (rule.*each.bounds).contain(each.value ? each.value(situation) : bytes);
         });
}

}  // namespace

Result<Rule> parse_rule(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 4 || words[words.size() - 2] != "->") {
    return Status{Code::invalid,
                  "expected: collective transport" + list_conditions() + " -> algorithm"};
  }
  Rule rule;
  if (words[0] != "*") {
    Collective collective;
    if (!parse(words[0], &collective)) {
      return Status{Code::invalid, "'" + std::string(words[0]) + "' is no collective"};
    }
    rule.collective = collective;
  }
  rule.transport = words[1];
  for (size_t i = 2; i + 2 < words.size(); ++i) {
    if (Status status = parse_condition(words[i], &rule); !status.ok()) return status;
  }
  rule.algorithm = words.back();
  return rule;
}

Result<std::vector<Rule>> parse_rules(std::string_view text) {
  std::vector<Rule> rules;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words_of(line).empty()) continue;
    Result<Rule> rule = parse_rule(line);
    const Status status = rule.ok() ? check_names(*rule) : rule.status();
    if (!status.ok()) return status.with("line " + std::to_string(number));
    rules.push_back(std::move(*rule));
  }
  return rules;
}

const Choices::From& Choices::find(size_t bytes) const {
  const From* found = &from_.front();
  for (const From& from : from_) {
    if (from.bytes > bytes) break;
    found = &from;
  }
  return *found;
}

Result<Selector> Selector::make(const Knobs& knobs) {
  static_assert(std::extent_v<decltype(Knobs::algorithm)> == collective_count);
  Selector selector;
  selector.reproducible_ = knobs.reproducible;
  for (const Knob& knob : knob_table()) {
    const auto* const index = std::get_if<uint32_t>(&knob.field);
    if (!index) continue;
    const auto collective = static_cast<Collective>(*index);
    const Status status = selector.force(collective, knobs.algorithm[*index]);
    if (!status.ok()) return status.with(knob.name);
  }
  std::string text;
  if (!knobs.rules.empty()) {
    Result<std::string> file = read_file(knobs.rules);
    if (!file.ok()) return file.status().with("SLUICE_RULES");
    Result<std::vector<Rule>> rules = parse_rules(*file);
    if (!rules.ok()) return rules.status().with("SLUICE_RULES: '" + knobs.rules + "'");
    selector.rules_ = std::move(*rules);
  }
  Result<std::vector<Rule>> builtin = parse_rules(builtin_rules());
  if (!builtin.ok()) return builtin.status().with("built-in rules");
  for (Rule& rule : *builtin) rule.ships = true;
  selector.rules_.insert(selector.rules_.end(), builtin->begin(), builtin->end());
  return selector;
}

Status Selector::force(Collective collective, const std::string& name) {
  if (!name.empty() && name != leave_to_mpi && !find_algorithm(collective, name)) {
    std::string known;
    for (const Algorithm& algorithm : algorithms(collective)) {
      known += std::string(algorithm.name) + ", ";
    }
    return {Code::invalid, std::string(to_string(collective)) + " has no algorithm '" + name +
                               "': there are " + known + "and mpi"};
  }
  forced_[static_cast<uint32_t>(collective)] = name;
  return {};
}

bool Selector::is_able(const Algorithm& algorithm, const Situation& situation) const {
  const bool bound = reproducible_ && is_reducing(situation.collective);
  return (situation.shm || algorithm.means() != Means::shared_memory) &&
         (situation.cma || !algorithm.needs.cma) &&
         can_serve(algorithm, situation.ranks, situation.ordered, situation.ragged, situation.hosts,
                   situation.groups) &&
         (!bound || is_balanced(algorithm, situation.ranks));
}

const Algorithm* Selector::able(const std::string& name, const Situation& situation) const {
  const Algorithm* algorithm = find_algorithm(situation.collective, name);
  return algorithm && is_able(*algorithm, situation) ? algorithm : nullptr;
}

Selector::Choice Selector::find(const Situation& situation, size_t bytes) const {
  const std::string& forced = forced_[static_cast<uint32_t>(situation.collective)];
  if (forced == leave_to_mpi) return {nullptr, false};
  if (const Algorithm* algorithm = able(forced, situation)) return {algorithm, false};
  bool is_decided = false;
  for (const Rule& rule : rules_) {
    if (!matches(rule, situation, bytes)) continue;
    const bool is_open = rule.ships && !is_decided;
    if (rule.algorithm == leave_to_mpi) return {nullptr, is_open};
    if (const Algorithm* algorithm = able(rule.algorithm, situation)) return {algorithm, is_open};
    is_decided = is_decided || rule.algorithm == leave_to_rules;
  }
  return {nullptr, false};
}

std::string Selector::passed_over(const Situation& situation) const {
  const std::string& forced = forced_[static_cast<uint32_t>(situation.collective)];
  return forced.empty() || forced == leave_to_mpi || able(forced, situation) ? "" : forced;
}

// The choice can change only at a bound of some rule.
Choices Selector::choices(const Situation& situation) const {
  std::set<size_t> bounds{0};
  for (const Rule& rule : rules_) {
    bounds.insert(rule.bytes.low);
    if (rule.bytes.high != ~size_t{0}) bounds.insert(rule.bytes.high + 1);
  }
  Choices choices;
  for (const size_t bytes : bounds) {
    const auto [algorithm, is_open] = find(situation, bytes);
    const bool is_same = !choices.from_.empty() && choices.from_.back().algorithm == algorithm &&
                         choices.from_.back().is_open == is_open;
    if (!is_same) choices.from_.push_back({bytes, algorithm, is_open});
  }
  return choices;
}

}  // namespace sluice
