// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/calls_in_flight.h"

namespace sluice {
namespace {

// One that no call has, or a new one.
template <typename Kept, typename... Of>
std::unique_ptr<Kept> take_or_make(std::vector<std::unique_ptr<Kept>>& spare, Of&... of) {
  if (spare.empty()) return std::make_unique<Kept>(of...);
  std::unique_ptr<Kept> taken = std::move(spare.back());
  spare.pop_back();
  return taken;
}

}  // namespace

CallInFlight& CallsInFlight::add(const Algorithm& algorithm, const Call& call) {
  auto made = take_or_make(spare_calls_, resources_.knobs);
  spare_calls_.reserve(calls_.size() + 1);
  spare_.reserve(calls_.size() + 1);
  spare_flat_.reserve(calls_.size() + 1);
  spare_get_.reserve(calls_.size() + 1);
  if (algorithm.needs.cma) {
    made->get = take_or_make(spare_get_, *cells_, *cma_, resources_);
    made->by = made->get.get();
  } else if (algorithm.means() == Means::shared_memory) {
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
  if (!resources_.repeats) call.by->trim();
  if (call.own) spare_.push_back(std::move(call.own));
  if (call.flat) spare_flat_.push_back(std::move(call.flat));
  if (call.get) spare_get_.push_back(std::move(call.get));
  call.by = nullptr;
}

void CallsInFlight::keep(std::unique_ptr<CallInFlight> call) {
  call->call = call->preceded = nullptr;
  call->owner = nullptr;
  call->state = Executor::State::waiting;
  call->has_lost_rank = false;
  spare_calls_.push_back(std::move(call));
}

}  // namespace sluice
