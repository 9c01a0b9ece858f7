// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/team_failures.h"

#include <utility>

namespace sluice {

Status TeamFailures::find_failure(CallInFlight& call) {
  if (is_aborted_in_arena()) return aborted_in_arena();
  if (waiter_.now() - looked_ < between_checks_) return {};
  looked_ = waiter_.now();
  if (call.is_sound && !(*call.is_sound)()) return shm_->failure(*call.call);
  if (!shm_)
    (void)channels_.open_to(TeamChannels::Whom::met, rank_);  // who passes it on may be any
  Status status = channels_.aborted_by_peers();
  if (!status.ok() || !call.by || call.by->notices_death()) return status;
  // (A rank that has done its part may end before this one is done. So a second look decides.)
  status = find_lost();
  return std::exchange(call.has_lost_rank, !status.ok()) ? status : Status();
}

// The error for a rank whose process has ended, or whose link has failed.
Status TeamFailures::find_lost() {
  const auto ended = shm_ ? shm_->find_ended() : std::nullopt;
  if (!ended) return channels_.failure();
  return Status{Code::peer_lost, "its process is gone"}.with(channels_.describe(*ended));
}

// (If a rank has aborted in the arena, it may have ended since. What runs calls by other means than
// the engine's may see no more of a rank's end than that its own part fails.)
Status TeamFailures::why_failed(const CallInFlight& call) {
  if (is_aborted_in_arena()) return aborted_in_arena();
  const Executor::Failure failure = call.by->failure();
  if (failure.peer) return failure.status.with(channels_.describe(*failure.peer));
  if (call.by->notices_death()) return failure.status;
  Status cause = channels_.aborted_by_peers();
  if (cause.ok()) cause = find_lost();
  return cause.ok() ? failure.status : cause;
}

// The rank that fails first may have no channels yet: it opens them to all peers. One that it can't
// reach learns of it from others: these open channels where that costs no connection.
bool TeamFailures::tell(const std::string& text, bool passes_on) {
  using Whom = TeamChannels::Whom;
  if (shm_) shm_->abort(text);
  const bool opened = shm_ || channels_.open_to(passes_on ? Whom::met : Whom::all, rank_);
  const bool told = channels_.abort(text) && opened;
  waiter_.begin();
  const auto is_put_to = [&] { return shm_ && shm_->is_put_to(); };
  while ((!channels_.abort_sent() || is_put_to()) && waiter_.waited() < abort_grace) waiter_.turn();
  return told;
}

void TeamFailures::await_quiet(Executor& executor) {
  waiter_.begin();
  while (!executor.is_quiet() && waiter_.waited() < longest_grace) waiter_.turn();
}

}  // namespace sluice
