// SPDX-License-Identifier: BSD-3-Clause
//
// Counts a team's calls by class (class_record.h). Of short calls in shared memory that repeat the
// last one, most are only counted, in a few instructions. All others are timed.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/class_record.h"
#include "src/engine/statistics.h"
#include "src/engine/waiter.h"

namespace sluice {

// The team whose calls are told, and what its links have been.
struct CountedTeam {
  const std::string& communicator;
  uint64_t group;  // as in CountedClass
  TeamId id;
  Rank rank, size;
  std::string links;
};

// The name of what carried a call, and how: arena, links, cells, or a carrier's name.
std::string carrier_of(const Algorithm& algorithm, const std::string& links);
std::string path_of(const Algorithm& algorithm);

class ClassCounts {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind : uint8_t { blocking, nonblocking };

  // waiter: the team's. sample: calls of each class that are kept.
  ClassCounts(Kind kind, const Waiter& waiter, size_t sample)
      : kind_(kind), sample_(sample), waiter_(waiter) {}

  // Whether the call is only counted; then it has been. It runs in shared memory.
  bool pass(const Algorithm& algorithm, size_t bytes) {
    return &algorithm == last_.algorithm && bytes == last_.bytes && --last_.left != 0;
  }
  // A call that is timed begins.
  void begin() {
    settle_wait();
    is_timed_ = true;
  }
  // It has ended.
  void end() { is_timed_ = waits_ = false; }
  // Likewise, and it counts. bytes: of this rank. May throw std::bad_alloc.
  void add(const Algorithm& algorithm, const Call& call, uint64_t bytes, Clock::time_point began);
  // To be called before the waiter begins a wait in the arena.
  void begin_wait() {
    settle_wait();
    waits_ = !is_timed_ && last_.row < rows_.size();
  }
  bool empty() const { return rows_.empty(); }
  // Adds all to a process's sums, and forgets them.
  void hand_over(const CountedTeam& team, Statistics* statistics);

 private:
  struct Row {
    Collective collective;
    const Algorithm* algorithm;
    uint8_t size;
    ClassCounter counter;
  };
  static constexpr size_t most_short = 4096;  // bytes of a call in which the clock takes its time

  size_t find(const Algorithm& algorithm, const Call& call);
  void settle_last();
  void settle_wait();
  bool is_short(const Algorithm& algorithm, const Call& call) const;

  // The class and the bytes of the last call, if such calls may be only counted.
  struct {
    const Algorithm* algorithm = nullptr;
    size_t bytes = 0;
    uint64_t left = 0, first = 0;  // until the next that is timed; what that was at first
    size_t row = ~size_t{0};
  } last_;
  const Kind kind_;
  bool is_timed_ = false;  // the call that runs
  bool waits_ = false;     // the waiter's last wait was that of a call that was only counted
  const size_t sample_;
  const Waiter& waiter_;
  uint64_t handed_over_ = 0;
  std::vector<Row> rows_;
};

}  // namespace sluice
