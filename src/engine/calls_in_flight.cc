// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/calls_in_flight.h"

#include <algorithm>

namespace sluice {

CallInFlight& CallsInFlight::add(const Algorithm& algorithm, const Call& call) {
  auto made = std::make_unique<CallInFlight>(resources_.knobs);
  spare_.reserve(calls_.size() + 1);
  if (spare_.empty()) spare_.push_back(std::make_unique<PlanExecutor>(resources_));
  calls_.push_back(std::move(made));
  CallInFlight& added = *calls_.back();
  added.call = &call;
  added.algorithm = &algorithm;
  added.own = std::move(spare_.back());
  spare_.pop_back();
  added.by = added.own.get();
  return added;
}

std::unique_ptr<CallInFlight> CallsInFlight::remove(const CallInFlight& call) {
  const auto place =
      std::ranges::find_if(calls_, [&](const auto& each) { return each.get() == &call; });
  std::unique_ptr<CallInFlight> removed = std::move(*place);
  calls_.erase(place);
  removed->own->trim();
  spare_.push_back(std::move(removed->own));
  return removed;
}

}  // namespace sluice
