// SPDX-License-Identifier: BSD-3-Clause
//
// What statistics in a file say of a class of calls on one rank (SLUICE_STATS=json:FILE): calls,
// bytes, time, how long calls took, and a sample of calls with the time at which this rank entered
// them. All ranks sample the same calls, so their entries tell afterwards who was late
// (job_statistics.h).
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collectives/algorithm.h"

namespace sluice {

// Scrambles a number: equal on all ranks, and without a pattern (splitmix64's output function).
constexpr uint64_t scramble(uint64_t number) {
  number += 0x9e3779b97f4a7c15ULL;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
  return number ^ (number >> 31);
}

struct CountedClass {
  static constexpr uint8_t varied = std::numeric_limits<uint8_t>::max();

  std::string communicator;
  uint64_t group = 0;  // of its processes: differs if they do; equal on all ranks
  Collective collective = Collective::barrier;
  std::string algorithm, carrier;
  std::string path;          // arena, links, cells, mpi, ipc, nccl
  uint8_t size = 0;          // calls of 2^(size - 1) to 2^size - 1 bytes; 0: none; or varied
  bool nonblocking = false;  // the time is from the call's start to its end
  auto operator<=>(const CountedClass&) const = default;
};

// A call on one rank.
struct TimedCall {
  uint64_t key = 0;     // equal on all ranks, and no other call's
  int64_t entered = 0;  // nanoseconds, on this rank's clock
  float lasted = 0;     // nanoseconds
  Rank root = 0;
};

// A sample of the calls of a class, over all its time: each call at first, then fewer and fewer.
// Which ones depends only on how many calls there were. Gaps vary, so that no rhythm of the program
// hides some calls.
class CallSample {
 public:
  // The number of the next call that is to be added, from 1.
  uint64_t next() const { return next_; }
  // How many calls each now stands for.
  double weight() const { return static_cast<double>(uint64_t{1} << level_); }
  // most: how many are kept.
  void add(const TimedCall& call, size_t most);
  std::vector<TimedCall>& calls() { return calls_; }

 private:
  uint64_t next_ = 1;
  uint32_t level_ = 0;
  std::vector<TimedCall> calls_;
};

struct ClassRecord {
  static constexpr size_t octaves = 40;
  using Histogram = std::array<uint64_t, octaves>;

  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t nanoseconds = 0;
  Histogram histogram{};  // [k]: calls that took 2^k to 2^(k + 1) - 1 ns
  std::vector<TimedCall> sample;

  static size_t octave(uint64_t nanoseconds);
  // Adds another one of the class. most: calls of the sample that are kept.
  void add(const ClassRecord& other, size_t most);
};

// Counts the calls of one class. Not all are timed: short ones between two of the sample are only
// counted, unless they turn out to be long.
class ClassCounter {
 public:
  // To be called for a call that was timed. bytes: of this rank.
  void add(TimedCall call, uint64_t bytes, size_t most);
  // So many calls that were not timed, of so many bytes each.
  void pass(uint64_t calls, uint64_t bytes) {
    calls_ += calls;
    passed_ += calls;
    bytes_ += calls * bytes;
  }
  // One of those that were not timed took longer than `long_call`.
  void add_long(uint64_t nanoseconds);
  static constexpr uint64_t long_call = 50'000;  // nanoseconds

  uint64_t calls() const { return calls_; }
  // The number of the next call that must be timed.
  uint64_t next() const { return sample_.next(); }
  // Of what was timed, and what the sample says of the rest. The sample's keys are scrambled with
  // `salt`.
  ClassRecord record(uint64_t salt);

 private:
  using Weights = std::array<double, ClassRecord::octaves>;
  uint64_t calls_ = 0, bytes_ = 0;
  uint64_t passed_ = 0;  // of calls_: not timed
  uint64_t long_ = 0;    // of passed_
  uint64_t nanoseconds_ = 0;
  ClassRecord::Histogram histogram_{};
  // Of calls of the sample that were not long.
  double weighted_nanoseconds_ = 0;
  Weights weights_{};
  CallSample sample_;
};

}  // namespace sluice
