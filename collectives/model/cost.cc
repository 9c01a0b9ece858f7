// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/model/parts.h"

namespace sluice {

namespace {

// Times all steps. Call run() in an order in which they can run.
class Clock {
 public:
  Clock(const PlanSet& set, const Partners& partners, const Counts& counts)
      : set_(set), partners_(partners), maps_(memory_maps(set, counts, false)) {
    timeline_.sent.resize(set.size(), 0);
    if (!set.hosts.empty()) {
      timeline_.between.resize(*std::max_element(set.hosts.begin(), set.hosts.end()) + 1, 0);
    }
    for (Rank rank = 0; rank < set.size(); ++rank) {
      timeline_.steps.emplace_back(set.plans[rank].steps.size());
      timeline_.scratch.push_back(maps_[rank].scratch());
    }
  }

  void run(const StepAt& at) {
    const Step& step = set_.plans[at.rank].steps[at.step];
    StepTime& mine = ready(at);
    if (step.kind != Kind::send) return;
    StepTime& other = ready({step.peer, partners_[at.rank][at.step]});
    if (mine.elements == 0 && !is_token(step)) return;
    mine.start = other.start = std::max(mine.start, other.start);
    mine.end = other.end = mine.start + 1;
    timeline_.length = std::max(timeline_.length, mine.end);
    timeline_.sent[at.rank] += mine.elements;
    if (set_.hosts.empty() || set_.hosts[at.rank] == set_.hosts[step.peer]) return;
    timeline_.between[set_.hosts[at.rank]] += mine.elements;
  }

  Timeline result() && { return std::move(timeline_); }

 private:
  // Times a step by its own dependencies alone, and counts its elements.
  StepTime& ready(const StepAt& at) {
    const Plan& plan = set_.plans[at.rank];
    const Step& step = plan.steps[at.step];
    auto& times = timeline_.steps[at.rank];
    StepTime& time = times[at.step];
    for (const After& after : plan.after_of(step)) {
      time.start = std::max(time.start, times[after.step].end);
    }
    time.end = time.start;
    time.elements = maps_[at.rank].elements(plan.of(step.kind == Kind::send ? step.from : step.to));
    return time;
  }

  const PlanSet& set_;
  const Partners& partners_;
  const std::vector<MemoryMap> maps_;
  Timeline timeline_;
};

// S of Cost, in elements: of the vector, or of all blocks as if all were as large as the largest.
double full_size(const PlanSet& set, const Counts& counts) {
  switch (set.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::scan:
    case Collective::exscan:
      return static_cast<double>(counts[0]);
    case Collective::barrier:
      return 0;
    default:
      return static_cast<double>(*std::max_element(counts.begin(), counts.end())) * set.size();
  }
}

size_t pieces_sent(const Plan& plan) {
  size_t pieces = 0;
  for (const Step& step : plan.steps) {
    if (step.kind == Kind::send) pieces += step.from.count;
  }
  return pieces;
}

std::string compared(const std::string& what, double is, double said) {
  return what + ": " + std::to_string(is) + " where its cost says " + std::to_string(said);
}

}  // namespace

Timeline Model::timeline(const Counts& counts) const {
  Clock clock(set_, partners_, counts);
  for (const StepAt& at : sequence_) clock.run(at);
  return std::move(clock).result();
}

namespace {

// Compares elements sent with a cost. Each may exceed it by its `slack`, where parts do not divide
// evenly. If the cost is exact, at least one must reach it.
void check_sent(const std::vector<size_t>& sent, const std::vector<size_t>& slack, double said,
                bool exact, const std::string& who, Faults& faults) {
  double most = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto is = static_cast<double>(sent[i]);
    most = std::max(most, is);
    if (is <= said + static_cast<double>(slack[i]) + 0.5) continue;
    add_fault(faults, compared(who + " " + std::to_string(i) + " sends", is, said));
  }
  if (exact && most < said - 0.5) {
    add_fault(faults, compared("no " + who + " sends more than", most, said));
  }
}

}  // namespace

Faults Model::check_cost(const Counts& counts, const Cost& cost) const {
  Faults faults;
  const Timeline timeline = this->timeline(counts);
  const double size = full_size(set_, counts);
  const bool tokens = set_.collective == Collective::barrier;
  const bool even = tokens || (counts.size() == 1 && size > 0 && counts[0] % even_count() == 0);
  const bool exact = even && !cost.at_most;
  if (timeline.length > cost.steps || (exact && timeline.length < cost.steps)) {
    add_fault(faults, compared("steps on the critical path", timeline.length, cost.steps));
  }
  // If parts do not divide evenly, each may be an element too large.
  std::vector<size_t> slack(set_.size(), 0), slack_between(timeline.between.size(), 0);
  for (Rank rank = 0; rank < set_.size(); ++rank) {
    if (!even) slack[rank] = pieces_sent(set_.plans[rank]);
    if (!set_.hosts.empty()) slack_between[set_.hosts[rank]] += slack[rank];
    const auto scratch = static_cast<double>(timeline.scratch[rank]);
    const double more = even ? 0 : static_cast<double>(set_.plans[rank].scratch.size());
    if (scratch > cost.scratch * size + more + 0.5) {
      add_fault(faults, compared("rank " + std::to_string(rank) + " takes scratch", scratch,
                                 cost.scratch * size));
    }
  }
  check_sent(timeline.sent, slack, cost.bytes * size, exact, "rank", faults);
  check_sent(timeline.between, slack_between, cost.between * size, exact, "host", faults);
  return faults;
}

size_t Model::even_count() const {
  // A block of scratch may be as large as a part of a block, and is itself cut into parts.
  size_t blocks = 1, scratch = 1;
  for (const Plan& plan : set_.plans) {
    for (const Piece& piece : plan.pieces) {
      size_t& count = piece.area == Area::scratch ? scratch : blocks;
      count = std::lcm(count, size_t{piece.part.of});
    }
    for (const Piece& like : plan.scratch) blocks = std::lcm(blocks, size_t{like.part.of});
  }
  return blocks * scratch;
}

}  // namespace sluice
