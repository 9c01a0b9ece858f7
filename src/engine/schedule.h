// SPDX-License-Identifier: BSD-3-Clause
//
// A plan made ready to run, and a team's bounded cache of such plans.
#pragma once

#include <memory>
#include <span>
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
  const Algorithm* algorithm_;
  Rank root_;
  Plan plan_;
  std::vector<uint32_t> first_;  // into dependents_, by step; one more than there are steps
  std::vector<uint32_t> dependents_;
};

// The schedules of one team, by (algorithm, root). Evicts the least recently used.
class ScheduleCache {
 public:
  static constexpr size_t capacity = 64;

  // shape: its root is ignored. The schedule stays valid until `capacity` others have been asked
  // for. May throw std::bad_alloc.
  const Schedule* get(const Algorithm* algorithm, Rank root, Shape shape);

 private:
  struct Entry {
    std::unique_ptr<Schedule> schedule;
    uint64_t used;
  };
  std::vector<Entry> entries_;
  const Schedule* latest_ = nullptr;
  uint64_t clock_ = 0;
};

}  // namespace sluice
