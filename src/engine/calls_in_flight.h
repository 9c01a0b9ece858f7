// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/engine/call_in_flight.h"

namespace sluice {

// The calls of a team in flight, each with an executor of its own. Both are kept for later ones.
class CallsInFlight {
 public:
  using List = std::vector<std::unique_ptr<CallInFlight>>;

  // cells: for calls in shared memory; null: there are none. cma: for long ones; null: ranks can't
  // read each other's memory.
  CallsInFlight(PlanResources& resources, Cells* cells, std::unique_ptr<Cma> cma)
      : resources_(resources), cells_(cells), cma_(std::move(cma)) {}

  void use(Cells& cells) { cells_ = &cells; }
  bool empty() const { return calls_.empty(); }
  size_t size() const { return calls_.size(); }
  List::const_iterator begin() const { return calls_.begin(); }
  List::const_iterator end() const { return calls_.end(); }

  // A new one, the last. May throw std::bad_alloc.
  CallInFlight& add(const Algorithm& algorithm, const Call& call);
  // Takes those for which `has_ended` says so off the list, and calls `then` for each, in their
  // order. Neither may add any.
  template <typename HasEnded, typename Then>
  void remove_if(const HasEnded& has_ended, const Then& then) {
    size_t kept = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!has_ended(*calls_[i])) {
        if (kept != i) calls_[kept] = std::move(calls_[i]);
        ++kept;
        continue;
      }
      std::unique_ptr<CallInFlight> ended = std::move(calls_[i]);
      give_back(*ended);
      then(*ended);
      keep(std::move(ended));
    }
    calls_.resize(kept);
  }
  // Frees the executors that no call has.
  void trim() {
    spare_calls_.clear();
    spare_.clear();
    spare_flat_.clear();
    spare_get_.clear();
  }

 private:
  void give_back(CallInFlight& call);
  void keep(std::unique_ptr<CallInFlight> call);

  PlanResources& resources_;
  Cells* cells_;
  const std::unique_ptr<Cma> cma_;
  List calls_;
  // These have room for those in use.
  List spare_calls_;
  std::vector<std::unique_ptr<PlanExecutor>> spare_;
  std::vector<std::unique_ptr<FlatInFlight>> spare_flat_;
  std::vector<std::unique_ptr<GetInFlight>> spare_get_;
};

}  // namespace sluice
