// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/calls_in_flight.h"

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

void CallsInFlight::give_back(CallInFlight& call) {
  call.own->trim();
  spare_.push_back(std::move(call.own));
  call.by = nullptr;
}

}  // namespace sluice
