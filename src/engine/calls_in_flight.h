// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/engine/call_in_flight.h"

namespace sluice {

// The calls that a team has started and not finished, each with a plan executor of its own, which
// is kept for later ones.
class CallsInFlight {
 public:
  using List = std::vector<std::unique_ptr<CallInFlight>>;

  explicit CallsInFlight(PlanResources& resources) : resources_(resources) {}

  bool empty() const { return calls_.empty(); }
  List::const_iterator begin() const { return calls_.begin(); }
  List::const_iterator end() const { return calls_.end(); }

  // A new one, the last. May throw std::bad_alloc.
  CallInFlight& add(const Algorithm& algorithm, const Call& call);
  // Takes one that has ended off the list.
  std::unique_ptr<CallInFlight> remove(const CallInFlight& call);
  // Frees the executors that no call has.
  void trim() { spare_.clear(); }

 private:
  PlanResources& resources_;
  List calls_;
  std::vector<std::unique_ptr<PlanExecutor>> spare_;  // has room for those in use
};

}  // namespace sluice
