// SPDX-License-Identifier: BSD-3-Clause
//
// What a team has run so far, for statistics: a tally for each collective and algorithm.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/statistics.h"

namespace sluice {

class CallCounts {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts a call that has ended now. May throw std::bad_alloc.
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

  std::vector<Row> tallies_;
};

}  // namespace sluice
