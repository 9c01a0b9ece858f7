// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a team on one host agree on an arena, and how they wait in it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "src/engine/agreement.h"
#include "src/engine/call.h"
#include "src/engine/class_counts.h"
#include "src/engine/localities.h"
#include "src/engine/team.h"
#include "src/engine/waiter.h"
#include "transports/shm/arena.h"

namespace sluice {

// How the bootstrap's ranks agree on an arena. The leader's first offer goes to all ranks in an
// exchange that they make anyway. Then each rank says whether it could take the offer up. If some
// could not, the leader makes one more offer.
class ArenaAgreement {
 public:
  // Throws std::bad_alloc. The other functions throw nothing, unless they say so.
  ArenaAgreement(ArenaSource& source, Bootstrap& bootstrap, std::vector<ProcessId> processes);

  // The leader makes its first offer; other ranks get an empty one. If it fails, `made` is false.
  ArenaOffer offer() { return offer(false); }
  // On the leader, the segment that its offer lies in; on others, the segment that they map for
  // these processes. It stays mapped while this object lives. May throw std::bad_alloc.
  SegmentName segment(const ArenaOffer& offered) {
    held_ = leads() ? source_.segment_of(offered.where) : source_.held_for(processes_);
    return held_.name;
  }
  // Takes up an offer in a segment that all ranks map already. Local; fails only for lack of memory
  // (Code::memory).
  Result<std::unique_ptr<Arena>> accept(const ArenaOffer& offered);
  // To be called if that failed: aborts the arena, so the others see the cause when they use it.
  void reject(const ArenaOffer& offered, const Status& cause);
  // To be called instead of `agree`, if all ranks know that none will take the offer.
  void withdraw(const ArenaOffer& offered);
  // Collective. Returns errors of the bootstrap's exchanges. nullptr, not an error, if a rank can't
  // reach the memory: the first such rank logs the reason. offered: the leader's offer, on all
  // ranks. name: of the communicator, for messages.
  Result<std::unique_ptr<Arena>> agree(const ArenaOffer& offered, const std::string& name);

 private:
  struct Answer {
    bool good;        // this rank took up the last offer
    ArenaOffer next;  // the leader's second offer
  };

  bool leads() const { return bootstrap_.rank() == 0; }
  ArenaOffer offer(bool again);
  std::unique_ptr<Arena> take_up(const ArenaOffer& offered);
  Status exchange(const Answer& mine);

  ArenaSource& source_;
  Bootstrap& bootstrap_;
  HeldSegment held_;
  const std::vector<ProcessId> processes_;
  std::vector<Answer> answers_;
  const Status no_memory_{Code::memory, "no memory to find it"};
  Status trouble_;
};

// What a rank tells the others when it enters their arena.
struct ArenaMember {
  Locality locality;
  uint64_t round_trip = 0;  // to the other one of two, as measured before; 0: it was not
  Cma::Introduction introduction{};
  bool tries = false;        // wants CMA, and its arena can do it
  bool has_met_all = false;  // has tried CMA with all others in earlier teams
  bool reached_all = false;  // and it worked with those that it has tried
};

// Collective over the arena's ranks; blocks. *members: all ranks', in rank order. If every rank
// can use CMA with every other, the arena's rounds get the cma. Ranks that have not met in
// earlier teams try it, if all ranks want it (tries). The caller sets locality, round_trip and
// tries of `mine`. An error if the wait was given up. Throws std::bad_alloc, before anything is
// published.
Status join_arena(Arena& arena, WaitPolicy& wait_policy, ArenaMember mine,
                  std::vector<ArenaMember>* members);

// The error for a round of team set-up that failed.
Status why_not_met(const Rounds& rounds);

// The error for a CMA get or put that failed although the owner found its memory in reach.
Status why_not_moved(const Rounds::FailedMove& move);

// The wait policy in an arena: waits as the Waiter does, and checks every 0.1 s whether the rank
// that is waited for lives.
class ArenaWaitPolicy final : public WaitPolicy {
 public:
  // Called at every turn, with how long the call has waited, and for which rank. An error ends the
  // wait.
  using Watch = std::function<Status(std::chrono::nanoseconds waited, Rank rank)>;

  // counts: told when a wait begins; may be null.
  ArenaWaitPolicy(Waiter& waiter, Arena& arena, Watch watch, ClassCounts* counts = nullptr)
      : waiter_(waiter), arena_(arena), watch_(std::move(watch)), counts_(counts) {}

  void begin() {
    begun_ = gone_ = false;
    set_polls();
  }
  bool wait(uint32_t rank) override;
  // Why the wait was given up; ok if it was not.
  const Status& status() const { return status_; }
  Rank rank() const { return rank_; }  // the last that was waited for

 private:
  static constexpr uint32_t looks_alone = 200;  // polls of a flag, some 20 ns each
  static constexpr uint32_t looks_between_alone = 5;
  static constexpr uint32_t looks_crowded = 1;  // the rank waited for may need this processor
  static constexpr uint32_t looks_together_crowded = 100;

  void set_polls() {
    const bool crowded = waiter_.crowded();
    looks = crowded ? looks_crowded : looks_alone;
    looks_between = crowded ? looks_crowded : looks_between_alone;
    looks_together = crowded ? looks_together_crowded : looks_alone;
    least_together = std::max(waiter_.per_processor(), 3U) - 1;  // processors get unequal shares
  }
  bool check_process(Rank rank);

  Waiter& waiter_;
  Arena& arena_;
  const Watch watch_;
  ClassCounts* const counts_;
  bool begun_ = false;
  Rank rank_ = 0;
  bool gone_ = false;  // the rank waited for has ended; it may have published its data before
  Waiter::Clock::time_point looked_{};
  Status status_;
};

}  // namespace sluice
