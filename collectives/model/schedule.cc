// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "collectives/model/parts.h"

namespace sluice {

namespace {

class Scheduler {
 public:
  Scheduler(const PlanSet& set, const Partners& partners, const Segments& segments,
            std::mt19937_64* random)
      : set_(set), partners_(partners), segments_(segments), random_(random) {
    states_.resize(set.size());
    for (Rank rank = 0; rank < set.size(); ++rank) prepare(rank);
  }

  std::vector<Unit> run() {
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      for (StepId id = 0; id < states_[rank].size(); ++id) post_ready({rank, id});
    }
    while (next_ < runnable_.size()) {
      const Unit unit = pop();
      finish(unit.at, unit.segment);
      if (has_partner(unit.at)) finish(partner(unit.at), unit.segment);
    }
    return std::move(runnable_);
  }

  // Reports messages that only one side has posted.
  void find_hanging(Faults& faults) const {
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      for (StepId id = 0; id < states_[rank].size(); ++id) {
        const State& state = states_[rank][id];
        const bool posted = state.whole_waits == 0 && state.segments[0].waits == 0;
        if (!posted || state.left < state.segments.size()) continue;
        add_fault(faults, describe(set_, {rank, id}) + " hangs: " +
                              describe(set_, partner({rank, id})) + " is never posted");
      }
    }
  }

 private:
  struct SegmentState {
    uint32_t waits = 0;  // for pipelined steps that are not done
    bool posted = false;
  };
  struct State {
    uint32_t whole_waits = 0;
    size_t left = 0;
    std::vector<SegmentState> segments;  // at least one, though it may have nothing to do
    std::vector<After> later;            // the steps that wait for this one
  };

  void prepare(Rank rank) {
    const Plan& plan = set_.plans[rank];
    std::vector<State>& states = states_[rank];
    states.resize(plan.steps.size());
    for (StepId id = 0; id < plan.steps.size(); ++id) {
      State& state = states[id];
      state.segments.resize(std::max(segments_[rank][id], 1u));
      state.left = state.segments.size();
      for (const After& after : plan.after_of(plan.steps[id])) {
        states[after.step].later.push_back({id, after.pipelined});
        if (!after.pipelined) {
          ++state.whole_waits;
        } else {
          for (SegmentState& segment : state.segments) ++segment.waits;
        }
      }
    }
  }

  const Step& step(const StepAt& at) const { return set_.plans[at.rank].steps[at.step]; }
  State& state(const StepAt& at) { return states_[at.rank][at.step]; }
  bool has_partner(const StepAt& at) const {
    return is_message(step(at)) && segments_[at.rank][at.step] > 0;
  }
  StepAt partner(const StepAt& at) const { return {step(at).peer, partners_[at.rank][at.step]}; }

  void post_ready(const StepAt& at) {
    State& mine = state(at);
    if (mine.whole_waits > 0) return;
    for (uint32_t k = 0; k < mine.segments.size(); ++k) post_if_ready(at, k);
  }

  void post_if_ready(const StepAt& at, uint32_t k) {
    State& mine = state(at);
    if (mine.whole_waits > 0 || mine.segments[k].waits > 0 || mine.segments[k].posted) return;
    mine.segments[k].posted = true;
    if (!has_partner(at)) {
      runnable_.push_back({at, k});
    } else if (state(partner(at)).segments[k].posted) {
      runnable_.push_back({step(at).kind == Kind::send ? at : partner(at), k});
    }
  }

  Unit pop() {
    if (random_)
      std::swap(runnable_[next_], runnable_[next_ + (*random_)() % (runnable_.size() - next_)]);
    return runnable_[next_++];
  }

  void finish(const StepAt& at, uint32_t k) {
    State& mine = state(at);
    const bool whole = --mine.left == 0;
    for (const After& later : mine.later) {
      const StepAt next{at.rank, later.step};
      if (later.pipelined) {
        --state(next).segments[k].waits;
        post_if_ready(next, k);
      } else if (whole) {
        --state(next).whole_waits;
        post_ready(next);
      }
    }
  }

  const PlanSet& set_;
  const Partners& partners_;
  const Segments& segments_;
  std::mt19937_64* const random_;
  std::vector<std::vector<State>> states_;
  std::vector<Unit> runnable_;  // before next_: units that have run, in order
  size_t next_ = 0;
};

}  // namespace

std::vector<Unit> schedule(const PlanSet& set, const Partners& partners, const Segments& segments,
                           std::mt19937_64* random, Faults& faults) {
  Scheduler scheduler(set, partners, segments, random);
  std::vector<Unit> sequence = scheduler.run();
  scheduler.find_hanging(faults);
  return sequence;
}

}  // namespace sluice
