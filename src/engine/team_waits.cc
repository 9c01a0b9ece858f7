// SPDX-License-Identifier: BSD-3-Clause
//
// How a team waits: for a call that blocks, and for copies.
#include <new>
#include <string>

#include "src/engine/engine_team.h"

namespace sluice {

// Whether the call has ended: it is done, or the team is broken.
bool EngineTeam::advance(CallInFlight& call) {
  if (!broken_.ok() || call.state == Executor::State::done) return true;
  call.state = call.by->advance();
  if (call.state != Executor::State::failed) return call.state == Executor::State::done;
  (void)break_team(failures_.why_failed(call), call);
  return true;
}

Status EngineTeam::wait(CallInFlight& call) try {
  waiter_.begin();
  while (!advance(call)) {
    if (call.state == Executor::State::busy) {
      process_.endpoint->progress();
    } else {
      waiter_.turn();
      if (Status status = check_wait(call); !status.ok()) return break_team(status, call);
    }
  }
  return call.state == Executor::State::done ? Status() : broken_;
} catch (const std::bad_alloc&) {
  return break_team(process_.no_memory_for_call, call);
}

Status EngineTeam::watch(CallInFlight& call, std::chrono::nanoseconds waited, const auto& what) {
  return failures_.watch(call, waited, what, [&] { return describe(call); });
}

// Called at every turn of a call's wait over links.
Status EngineTeam::check_wait(CallInFlight& call) {
  if (failures_.is_aborted_in_arena()) return failures_.aborted_in_arena();
  return watch(call, waiter_.waited(), [&] { return call.by->awaited(); });
}

// Called at every turn of a wait in the arena.
Status EngineTeam::watch_arena(std::chrono::nanoseconds waited, Rank peer) {
  return watch(blocking_, waited, [&] { return describe_ranks({&peer, 1}); });
}

// (Called by a Packing, also while a call advances, and after it. What this brings in stays in its
// queue until then. If the team is broken, or a rank has aborted, the copy has little time left.)
Status EngineTeam::wait_for_copy(const IsDone& is_done, const std::string& what) {
  waiter_.begin();
  while (!is_done()) {
    waiter_.turn();
    const Status aborted = broken_.ok() ? failures_.aborted_in_arena() : broken_;
    if (!aborted.ok()) {
      if (waiter_.waited() <= TeamFailures::abort_grace) continue;
      return aborted;
    }
    Status status = watch(blocking_, waiter_.waited(), [&] { return what; });
    if (!status.ok()) return status;
  }
  waiter_.begin();
  return {};
}

}  // namespace sluice
