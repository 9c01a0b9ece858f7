// SPDX-License-Identifier: BSD-3-Clause
//
// Calls, bytes and time per communicator, collective, algorithm and transport; printed at the end
// with SLUICE_STATS=1.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "collectives/algorithm.h"

namespace sluice {

struct Tally {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // Call::bytes, summed; of alltoallv what this rank had for all, itself too
  uint64_t nanoseconds = 0;  // in the call, waiting for late ranks included
};

// A process's sums. Teams keep their own tallies and hand them in when they end; `add` may be
// called from any thread.
class Statistics {
 public:
  void add(const std::string& communicator, Collective collective, const std::string& algorithm,
           const std::string& transport, const Tally& tally);
  // A table for people, one line a row, busiest first, and what part all is of the time that has
  // passed since the first call; empty if there is nothing. Names longer than 64 bytes are cut.
  std::string table(std::chrono::nanoseconds passed) const;

 private:
  using Key = std::tuple<std::string, Collective, std::string, std::string>;
  mutable std::mutex mutex_;
  std::map<Key, Tally> rows_;
};

}  // namespace sluice
