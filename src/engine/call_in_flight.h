// SPDX-License-Identifier: BSD-3-Clause
//
// A call that a team runs. There may be several, over links; each has its executor. They share the
// team's order of calls, its sticky error and its waiter.
//
// Not ready for MPI's non-blocking collectives: a wait in one communicator does not advance calls
// of others; a copy from a device blocks `advance`; only one thread at a time may use a team. If
// ranks disagree about a call more than 8 calls ago, only SLUICE_TIMEOUT ends the wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "src/engine/plan_executor.h"
#include "src/engine/wait_limits.h"

namespace sluice {

struct CallInFlight {
  explicit CallInFlight(const Knobs& knobs) : limits(knobs) {}

  const Call* call = nullptr;  // lives until the call has ended
  // In an exchange of the team's own: the program's call that it precedes, for messages.
  const Call* preceded = nullptr;
  const Algorithm* algorithm = nullptr;
  Executor* by = nullptr;  // null while it runs in shared memory alone
  std::unique_ptr<PlanExecutor> own;
  Executor::State state = Executor::State::waiting;
  uint32_t number = 0;  // in the team
  WaitLimits limits;
  bool has_lost_rank = false;  // at the last look, in a wait that does not fail by itself
  // While a part of a shared-memory call goes over links: whether ranks agree about it.
  const std::function<bool()>* is_sound = nullptr;
  std::chrono::steady_clock::time_point began;  // if calls are counted
};

}  // namespace sluice
