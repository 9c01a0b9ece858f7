// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/model/model.h"

#include <algorithm>
#include <tuple>

#include "collectives/model/parts.h"

namespace sluice {

PlanSet all_plans(const Algorithm& algorithm, Shape shape) {
  PlanSet set;
  set.collective = algorithm.collective;
  set.root = shape.root;
  set.in_order = can_serve(algorithm, shape.size, true, false, shape.hosts);
  set.hosts.assign(shape.hosts.begin(), shape.hosts.end());
  set.balanced = is_balanced(algorithm, shape.size);
  for (shape.rank = 0; shape.rank < shape.size; ++shape.rank) {
    set.plans.push_back(algorithm.plan(shape));
  }
  return set;
}

std::string describe(const PlanSet& set, const StepAt& at) {
  static constexpr const char* names[] = {"send to", "recv from", "recv_reduce from", "reduce",
                                          "copy"};
  const Step& step = set.plans[at.rank].steps[at.step];
  std::string text = "rank " + std::to_string(at.rank) + ", step " + std::to_string(at.step) +
                     " (" + names[static_cast<int>(step.kind)];
  if (is_message(step)) {
    text += " " + std::to_string(step.peer) + ", ordinal " + std::to_string(step.ordinal);
  }
  return text + ")";
}

namespace {

// One end of a message.
struct End {
  Rank from, to;
  uint32_t ordinal;
  bool receives;
  StepAt at;

  auto direction() const { return std::tie(from, to); }
  auto message() const { return std::tie(from, to, ordinal); }
};

std::vector<End> all_ends(const PlanSet& set) {
  std::vector<End> ends;
  for (Rank rank = 0; rank < set.size(); ++rank) {
    for (StepId id = 0; id < set.plans[rank].steps.size(); ++id) {
      const Step& step = set.plans[rank].steps[id];
      if (!is_message(step)) continue;
      const bool receives = step.kind != Kind::send;
      const auto [from, to] = receives ? std::pair(step.peer, rank) : std::pair(rank, step.peer);
      ends.push_back({from, to, step.ordinal, receives, {rank, id}});
    }
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return std::tuple(a.message(), a.receives) < std::tuple(b.message(), b.receives);
  });
  return ends;
}

// Finds each message's other end.
Partners match(const PlanSet& set, Faults& faults) {
  Partners partners;
  for (const Plan& plan : set.plans) partners.emplace_back(plan.steps.size(), 0);
  const std::vector<End> ends = all_ends(set);
  for (size_t i = 0; i < ends.size(); ++i) {
    const End& a = ends[i];
    const bool paired = i + 1 < ends.size() && a.message() == ends[i + 1].message() &&
                        !a.receives && ends[i + 1].receives;
    if (!paired) {
      add_fault(faults, describe(set, a.at) + " has no counterpart");
      continue;
    }
    const End& b = ends[++i];
    partners[a.at.rank][a.at.step] = b.at.step;
    partners[b.at.rank][b.at.step] = a.at.step;
    const Step &send = set.plans[a.at.rank].steps[a.at.step],
               &recv = set.plans[b.at.rank].steps[b.at.step];
    if (is_token(send) != is_token(recv)) {
      add_fault(faults, describe(set, a.at) + " and " + describe(set, b.at) +
                            " do not agree on whether there is a payload");
    }
  }
  return partners;
}

// Counts every message as sent, whatever the number of elements: with fewer messages, steps only
// wait for less.
std::vector<StepAt> find_sequence(const PlanSet& set, const Partners& partners, Faults& faults) {
  Segments segments;
  for (const Plan& plan : set.plans) segments.emplace_back(plan.steps.size(), 1);
  std::vector<StepAt> sequence;
  for (const Unit& unit : schedule(set, partners, segments, nullptr, faults)) {
    sequence.push_back(unit.at);
  }
  return sequence;
}

// For each step, the ranks that must have entered before it can be done, whatever is buffered on
// the way.
class Arrivals {
 public:
  Arrivals(const PlanSet& set, const Partners& partners) : set_(set), partners_(partners) {
    for (const Plan& plan : set.plans) {
      before_.emplace_back(plan.steps.size(), std::vector<bool>(set.size(), false));
    }
  }

  void add(const StepAt& at) {
    std::vector<bool>& mine = before_[at.rank][at.step];
    mine[at.rank] = true;
    const Step& step = set_.plans[at.rank].steps[at.step];
    for (const After& after : set_.plans[at.rank].after_of(step)) {
      merge(mine, before_[at.rank][after.step]);
    }
    if (step.kind != Kind::send) return;
    const StepAt receive{step.peer, partners_[at.rank][at.step]};
    add(receive);
    merge(before_[receive.rank][receive.step], mine);
  }

  void note_early_leavers(Faults& faults) const {
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      std::vector<bool> seen(set_.size(), false);
      seen[rank] = true;
      for (const auto& before : before_[rank]) merge(seen, before);
      const auto missing = std::find(seen.begin(), seen.end(), false) - seen.begin();
      if (missing == set_.size()) continue;
      add_fault(faults, "rank " + std::to_string(rank) + " may leave before rank " +
                            std::to_string(missing) + " has come");
    }
  }

 private:
  static void merge(std::vector<bool>& into, const std::vector<bool>& from) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || from[i];
  }

  const PlanSet& set_;
  const Partners& partners_;
  std::vector<std::vector<std::vector<bool>>> before_;  // by rank and step
};

}  // namespace

Model::Model(PlanSet set) : set_(std::move(set)) {
  check_steps(set_, faults_);
  if (!faults_.empty()) return;
  partners_ = match(set_, faults_);
  check_memory_order(set_, faults_);
  if (!faults_.empty()) return;
  sequence_ = find_sequence(set_, partners_, faults_);
  if (!faults_.empty() || set_.collective != Collective::barrier) return;
  Arrivals arrivals(set_, partners_);
  for (const StepAt& at : sequence_) arrivals.add(at);
  arrivals.note_early_leavers(faults_);
}

Faults Model::check_lengths(const Counts& counts) const {
  Faults faults;
  const std::vector<MemoryMap> maps = memory_maps(set_, counts, false);
  const auto length = [&](const StepAt& at, Slice Step::*operand) {
    const Plan& plan = set_.plans[at.rank];
    return maps[at.rank].elements(plan.of(plan.steps[at.step].*operand));
  };
  const auto compare = [&](const StepAt& a, Slice Step::*x, const StepAt& b, Slice Step::*y) {
    const size_t first = length(a, x), second = length(b, y);
    if (first == second) return;
    add_fault(faults, describe(set_, a) + " has " + std::to_string(first) + " elements where " +
                          describe(set_, b) + " has " + std::to_string(second));
  };
  for (const StepAt& at : sequence_) {
    const Step& step = set_.plans[at.rank].steps[at.step];
    if (step.kind == Kind::send) {
      const StepAt receive{step.peer, partners_[at.rank][at.step]};
      compare(at, &Step::from, receive, &Step::to);
      const bool reduces = set_.plans[receive.rank].steps[receive.step].kind == Kind::recv_reduce;
      if (reduces) compare(receive, &Step::from, receive, &Step::to);
    } else {
      compare(at, &Step::from, at, &Step::to);
      if (step.kind == Kind::reduce) compare(at, &Step::with, at, &Step::to);
    }
  }
  return faults;
}

}  // namespace sluice
