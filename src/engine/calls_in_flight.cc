// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/calls_in_flight.h"

namespace sluice {
namespace {

// One that no call has, or a new one.
template <typename Kept>
std::unique_ptr<Kept> take_or_make(std::vector<std::unique_ptr<Kept>>& spare, auto& of) {
  if (spare.empty()) return std::make_unique<Kept>(of);
  std::unique_ptr<Kept> taken = std::move(spare.back());
  spare.pop_back();
  return taken;
}

}  // namespace

CallInFlight& CallsInFlight::add(const Algorithm& algorithm, const Call& call) {
  auto made = std::make_unique<CallInFlight>(resources_.knobs);
  spare_.reserve(calls_.size() + 1);
  spare_flat_.reserve(calls_.size() + 1);
  if (algorithm.means() == Means::shared_memory) {
    made->flat = take_or_make(spare_flat_, *cells_);
    made->by = made->flat.get();
  } else {
    made->own = take_or_make(spare_, resources_);
    made->by = made->own.get();
  }
  made->call = &call;
  made->algorithm = &algorithm;
  calls_.push_back(std::move(made));
  return *calls_.back();
}

void CallsInFlight::give_back(CallInFlight& call) {
  call.by->trim();
  if (call.own) spare_.push_back(std::move(call.own));
  if (call.flat) spare_flat_.push_back(std::move(call.flat));
  call.by = nullptr;
}

}  // namespace sluice
