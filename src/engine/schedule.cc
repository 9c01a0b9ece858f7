// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/schedule.h"

#include <algorithm>

namespace sluice {

Schedule::Schedule(const Algorithm* algorithm, Rank root, Plan plan)
    : algorithm_(algorithm), root_(root), plan_(std::move(plan)) {
  first_.assign(plan_.steps.size() + 1, 0);
  for (const After& after : plan_.after) ++first_[after.step + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  dependents_.resize(plan_.after.size());
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
    for (const After& after : plan_.after_of(plan_.steps[step])) {
      dependents_[next[after.step]++] = step;
    }
  }
}

// (A schedule that is pinned stays, even above the capacity.)
void ScheduleCache::evict() {
  const auto oldest = std::ranges::min_element(entries_, [](const Entry& left, const Entry& right) {
    const bool pinned = SchedulePin::is_pinned(*left.schedule);
    const bool other = SchedulePin::is_pinned(*right.schedule);
    return pinned != other ? other : left.used < right.used;
  });
  if (SchedulePin::is_pinned(*oldest->schedule)) return;
  if (latest_ == oldest->schedule.get()) latest_ = nullptr;
  entries_.erase(oldest);
}

SchedulePin ScheduleCache::get(const Algorithm* algorithm, Rank root, Shape shape) {
  const auto is_it = [&](const Schedule& schedule) {
    return schedule.algorithm() == algorithm && schedule.root() == root;
  };
  if (latest_ && is_it(*latest_)) return SchedulePin(latest_);
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return is_it(*entry.schedule); });
  if (found == entries_.end()) {
    shape.root = root;
    auto schedule = std::make_unique<Schedule>(algorithm, root, algorithm->plan(shape));
    if (entries_.size() >= capacity) evict();
    found = entries_.insert(entries_.end(), Entry{std::move(schedule), 0});
  }
  found->used = ++clock_;
  latest_ = found->schedule.get();
  return SchedulePin(latest_);
}

}  // namespace sluice
