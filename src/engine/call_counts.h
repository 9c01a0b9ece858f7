// SPDX-License-Identifier: BSD-3-Clause
//
// What a team has run so far, for statistics: a tally for each collective and algorithm. For tests
// of trials, calls take longer here (SLUICE_DELAY).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/engine/call.h"
#include "src/engine/delay.h"
#include "src/engine/statistics.h"

namespace sluice {

class CallCounts {
 public:
  using Clock = std::chrono::steady_clock;

  CallCounts(const Knobs& knobs, const Delay& delay)
      : are_on_(knobs.stats || !delay.empty()), are_told_(knobs.stats), delay_(delay) {}

  // Whether calls are counted, or delayed.
  bool are_on() const { return are_on_; }
  // The time at which a call begins, if so.
  Clock::time_point begin() const { return are_on_ ? Clock::now() : Clock::time_point(); }
  // What is pretended of the next call (Delay).
  std::chrono::nanoseconds pretended(const Algorithm& algorithm) const {
    return delay_.empty() ? std::chrono::nanoseconds(0) : delay_.pretended(algorithm.name);
  }
  // Counts a call that has ended now, if calls are counted. If memory is short, it is lost.
  void add(const Algorithm& algorithm, const Call& call, Rank ranks, Clock::time_point began);
  // Adds the tallies to a process's sums, and forgets them. links: what has carried plans.
  void hand_over(const std::string& communicator, const std::string& links, Statistics* statistics);
  bool empty() const { return tallies_.empty(); }

 private:
  struct Row {
    Collective collective;
    const Algorithm* algorithm;
    Tally tally;
  };
  Tally& tally(Collective collective, const Algorithm* algorithm);

  const bool are_on_, are_told_;
  Delay delay_;
  std::vector<Row> tallies_;
};

}  // namespace sluice
