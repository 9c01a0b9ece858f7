// SPDX-License-Identifier: BSD-3-Clause
//
// A call that a team runs. There may be several, over links; each has its executor. They share the
// team's order of calls, its sticky error and its waiter.
//
// For MPI's non-blocking collectives, what is missing yet: calls of other communicators do not
// advance in this one's waits; a copy from a device blocks `advance`; one thread at a time may use
// a team. Ranks that disagree about a call more than 8 calls ago find out by SLUICE_TIMEOUT only.
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
