// SPDX-License-Identifier: BSD-3-Clause
//
// Calls, bytes and time per communicator, collective, algorithm and transport. SLUICE_STATS=1
// prints them at the end. For a file (SLUICE_STATS=json:FILE) also by class (class_record.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "collectives/algorithm.h"
#include "src/engine/class_record.h"

namespace sluice {

struct Tally {
  uint64_t calls = 0;
  uint64_t bytes = 0;        // Call::bytes, summed; for alltoallv this rank's whole input
  uint64_t nanoseconds = 0;  // in the call, waiting for late ranks included
};

// A communicator's name in at most 64 bytes on one line; programs may give any.
std::string shorten_name(std::string name);

// A process's sums. A team keeps its own tallies, and adds them when its communicator is freed or
// the team ends. Any thread may call `add`.
class Statistics {
 public:
  void add(const std::string& communicator, Collective collective, const std::string& algorithm,
           const std::string& transport, const Tally& tally);
  // Of a class, on this rank of a communicator of so many. most: calls of its sample that are kept.
  void add(CountedClass of, Rank rank, Rank ranks, const ClassRecord& record, size_t most);
  struct Class {
    Rank rank = 0, ranks = 0;
    ClassRecord record;
  };
  std::map<CountedClass, Class> classes() const;
  // A call that MPI does from beginning to end, without a row of its own.
  void count_left() { left_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t left() const { return left_.load(std::memory_order_relaxed); }
  // A table for people, one line a row, busiest first, and the sum's share of the time that has
  // passed since the first call (passed), and how many of all calls were carried. Empty if no call
  // has a row. Names longer than 64 bytes are cut.
  std::string table(std::chrono::nanoseconds passed) const;

 private:
  using Key = std::tuple<std::string, Collective, std::string, std::string>;
  mutable std::mutex mutex_;
  std::map<Key, Tally> rows_;
  std::map<CountedClass, Class> classes_;
  std::atomic<uint64_t> left_{0};
};

}  // namespace sluice
