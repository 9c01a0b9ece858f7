// SPDX-License-Identifier: BSD-3-Clause
//
// A call that a team runs: the one that blocks, or one of those in flight (nonblocking_team.h),
// each of which has an executor of its own. If ranks disagree about a call in flight more than 8
// calls ago, only SLUICE_TIMEOUT ends the wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "src/engine/flat_in_flight.h"
#include "src/engine/get_in_flight.h"
#include "src/engine/plan_executor.h"
#include "src/engine/wait_limits.h"

namespace sluice {

// Who has started a call in flight.
class CallOwner {
 public:
  // Called once: the call has ended, and the team has forgotten it. Must not call the team.
  virtual void ended(const Status& status) = 0;

 protected:
  ~CallOwner() = default;
};

struct CallInFlight {
  explicit CallInFlight(const Knobs& knobs) : limits(knobs) {}

  const Call* call = nullptr;  // lives until the call has ended
  // In an exchange of the team's own: the program's call that it precedes, for messages.
  const Call* preceded = nullptr;
  const Algorithm* algorithm = nullptr;
  Executor* by = nullptr;             // null while it runs in shared memory alone
  std::unique_ptr<PlanExecutor> own;  // these three are of a call in flight: one of them
  std::unique_ptr<FlatInFlight> flat;
  std::unique_ptr<GetInFlight> get;
  CallOwner* owner = nullptr;  // of a call in flight
  Executor::State state = Executor::State::waiting;
  uint32_t number = 0;  // in the team
  WaitLimits limits;
  bool has_lost_rank = false;  // at the last look, in a wait that does not fail by itself
  // While a part of a shared-memory call goes over links: whether ranks agree about it.
  const std::function<bool()>* is_sound = nullptr;
  std::chrono::steady_clock::time_point began;  // if calls are counted
};

}  // namespace sluice
