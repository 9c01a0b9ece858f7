// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a team learn of each other's failures: by the arena's flag, and by ABORTs over
// links. A rank that waits looks at the flag at every turn, and for all else now and then.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "src/engine/call_in_flight.h"
#include "src/engine/shm_executor.h"
#include "src/engine/team.h"
#include "src/engine/team_channels.h"
#include "src/engine/waiter.h"

namespace sluice {

class TeamFailures {
 public:
  using Clock = Waiter::Clock;

  // shm: with an arena. All must outlive this.
  TeamFailures(Rank rank, TeamChannels& channels, Waiter& waiter, std::optional<ShmExecutor>& shm,
               const Process& process)
      : rank_(rank),
        channels_(channels),
        waiter_(waiter),
        shm_(shm),
        between_checks_(process.between_checks),
        first_check_(
            std::min<Clock::duration>(between_checks_, WaitLimits(process.knobs).least())) {}

  // How long a rank that gives up waits for its ABORTs to be sent, and for peers that connect to
  // it.
  static constexpr Clock::duration abort_grace = std::chrono::milliseconds(500);
  // The cause, if a rank has aborted in the arena. Quick.
  bool is_aborted_in_arena() const { return shm_ && shm_->is_aborted(); }
  Status aborted_in_arena() const {
    return is_aborted_in_arena() ? Status(Code::aborted, shm_->abort_cause()) : Status();
  }
  // Whether a rank has aborted, ranks disagree about the call, or a rank that the call waits for is
  // lost. Takes long, so it is called now and then.
  Status find_failure(CallInFlight& call);
  // Called at every turn of a call's wait, with the time waited so far. Warns if that gets long;
  // fails at the deadline, or if `find_failure` does. what: is waited for; name: of the call.
  // Functions that make texts.
  Status watch(CallInFlight& call, std::chrono::nanoseconds waited, const auto& what,
               const auto& name) {
    if (waited < first_check_) return {};
    if (Status status = find_failure(call); !status.ok()) return status;
    return call.limits.check(waited, what, name, call.number);
  }
  // Why a call's executor has failed.
  Status why_failed(const CallInFlight& call);

  // Tells the other ranks of a failure, and waits until they have been told and put into this
  // rank's memory no more, for `abort_grace` at most. passes_on: it was another rank's. False
  // if memory was lacking for some of them. May throw std::bad_alloc, when those in the arena have
  // been told.
  [[nodiscard]] bool tell(const std::string& text, bool passes_on);
  // Returns when an executor that was cancelled touches no memory of its call any more, or has not
  // stopped in 5 s.
  void await_quiet(Executor& executor);

 private:
  static constexpr Clock::duration longest_grace = std::chrono::seconds(5);

  Status find_lost();

  const Rank rank_;
  TeamChannels& channels_;
  Waiter& waiter_;
  std::optional<ShmExecutor>& shm_;
  const Clock::duration between_checks_;
  const Clock::duration first_check_;  // the length of a wait before the first check
  Clock::time_point looked_{};
};

}  // namespace sluice
