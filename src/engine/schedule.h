// SPDX-License-Identifier: BSD-3-Clause
//
// A plan made ready to run, and a team's bounded cache of such plans.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/algorithm.h"

namespace sluice {

// A plan, with the steps that wait for each step (the graph's edges reversed).
class Schedule {
 public:
  Schedule(const Algorithm* algorithm, Rank root, Plan plan);

  const Algorithm* algorithm() const { return algorithm_; }
  Rank root() const { return root_; }
  const Plan& plan() const { return plan_; }
  std::span<const uint32_t> dependents(uint32_t step) const {
    return {dependents_.data() + first_[step], first_[step + 1] - first_[step]};
  }

 private:
  friend class SchedulePin;

  const Algorithm* algorithm_;
  Rank root_;
  Plan plan_;
  std::vector<uint32_t> first_;  // into dependents_, by step; one more than there are steps
  std::vector<uint32_t> dependents_;
  mutable uint32_t pins_ = 0;
};

// Keeps a schedule in its team's cache while a call uses it.
class SchedulePin {
 public:
  SchedulePin() = default;
  explicit SchedulePin(const Schedule* schedule) : schedule_(schedule) { ++schedule_->pins_; }
  SchedulePin(SchedulePin&& other) noexcept : schedule_(std::exchange(other.schedule_, nullptr)) {}
  SchedulePin& operator=(SchedulePin&& other) noexcept {
    std::swap(schedule_, other.schedule_);
    return *this;
  }
  ~SchedulePin() { reset(); }
  void reset() {
    if (schedule_) --schedule_->pins_;
    schedule_ = nullptr;
  }
  const Schedule& operator*() const { return *schedule_; }

  static bool is_pinned(const Schedule& schedule) { return schedule.pins_ > 0; }

 private:
  const Schedule* schedule_ = nullptr;
};

// The schedules of one team, by (algorithm, root). Evicts the least recently used that no call
// uses.
class ScheduleCache {
 public:
  static constexpr size_t capacity = 64;

  // shape: its root is ignored. May throw std::bad_alloc.
  SchedulePin get(const Algorithm* algorithm, Rank root, Shape shape);

 private:
  struct Entry {
    std::unique_ptr<Schedule> schedule;
    uint64_t used;
  };
  void evict();

  std::vector<Entry> entries_;
  const Schedule* latest_ = nullptr;  // in entries_
  uint64_t clock_ = 0;
};

}  // namespace sluice
