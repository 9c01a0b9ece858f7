// SPDX-License-Identifier: BSD-3-Clause
//
// What a team has run so far, for statistics: a tally for each collective and algorithm or, if they
// go to a file, for each class of calls (class_counts.h). For tests of trials, calls take longer
// here (SLUICE_DELAY).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/engine/call.h"
#include "src/engine/class_counts.h"
#include "src/engine/delay.h"
#include "src/engine/statistics.h"

namespace sluice {

class CallCounts {
 public:
  using Clock = std::chrono::steady_clock;

  // waiter: the team's. ranks: of the team.
  CallCounts(const Knobs& knobs, const Delay& delay, ClassCounts::Kind kind, const Waiter& waiter,
             Rank ranks)
      : are_on_(knobs.counts_calls() || !delay.empty()),
        are_told_(knobs.counts_calls()),
        are_of_classes_(knobs.counts_in_file()),
        delay_(delay),
        classes_(kind, waiter, ranks <= many_ranks ? large_sample : small_sample) {}

  // Whether calls are counted, or delayed.
  bool are_on() const { return are_on_; }
  // Whether a call in shared memory may run without more ado.
  bool pass(const Algorithm& algorithm, size_t bytes) {
    return !are_on_ || classes_.pass(algorithm, bytes);
  }
  // The time at which a call begins, if it is counted or delayed.
  Clock::time_point begin() {
    if (!are_on_) return {};
    if (are_of_classes_) classes_.begin();
    return Clock::now();
  }
  // A call that has begun does not count.
  void end_uncounted() { classes_.end(); }
  // What must be told before a wait in the arena begins; null: nothing.
  ClassCounts* classes() { return are_of_classes_ ? &classes_ : nullptr; }
  // What is pretended of the next call (Delay).
  std::chrono::nanoseconds pretended(const Algorithm& algorithm) const {
    return delay_.empty() ? std::chrono::nanoseconds(0) : delay_.pretended(algorithm.name);
  }
  // Counts a call that has ended now, if calls are counted. If memory is short, it is lost.
  void add(const Algorithm& algorithm, const Call& call, Rank ranks, Clock::time_point began);
  // Adds the tallies to a process's sums, and forgets them.
  void hand_over(const CountedTeam& team, Statistics* statistics);
  bool empty() const { return tallies_.empty() && classes_.empty(); }

 private:
  struct Row {
    Collective collective;
    const Algorithm* algorithm;
    Tally tally;
  };
  Tally& tally(Collective collective, const Algorithm* algorithm);

  // Calls of a class that are kept, on each rank.
  static constexpr size_t large_sample = 256, small_sample = 32;
  static constexpr Rank many_ranks = 256;

  const bool are_on_, are_told_, are_of_classes_;
  Delay delay_;
  std::vector<Row> tallies_;
  ClassCounts classes_;
};

}  // namespace sluice
