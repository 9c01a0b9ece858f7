// SPDX-License-Identifier: BSD-3-Clause
//
// A shortage of memory in the kernel, for lack of which writes fail. It may pass, and then the same
// bytes go.
#pragma once

#include <chrono>

namespace sluice {

class Shortage {
 public:
  using Clock = std::chrono::steady_clock;

  // A write has failed. Whether to try again: not once all have failed for so long.
  bool is_young(Clock::duration limit) {
    const Clock::time_point now = Clock::now();
    if (since_ == Clock::time_point{}) since_ = now;
    return now - since_ < limit;
  }
  // One has not.
  void end() { since_ = {}; }

 private:
  Clock::time_point since_{};  // zero: there is none
};

}  // namespace sluice
