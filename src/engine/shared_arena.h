// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a team that share a host come to an arena, and how they wait in it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "src/engine/agreement.h"
#include "src/engine/call.h"
#include "src/engine/localities.h"
#include "src/engine/team.h"
#include "src/engine/waiter.h"
#include "transports/arena.h"

namespace sluice {

// How the bootstrap's ranks come to an arena: the leader's first offer goes to all with what they
// exchange anyway; then they say how they found it, and if some did not, that happens once more.
class ArenaAgreement {
 public:
  // Throws std::bad_alloc; nothing else here does.
  ArenaAgreement(ArenaSource& source, Bootstrap& bootstrap, std::vector<ProcessId> processes);

  // The leader's; nothing of any other rank's.
  ArenaOffer offer() { return offer(false); }
  // The segment that the leader's offer lies in, or that this rank maps for these processes: it
  // stays mapped while this object lives. May throw std::bad_alloc.
  SegmentName segment(const ArenaOffer& offered) {
    held_ = leads() ? source_.segment_of(offered.where) : source_.held_for(processes_);
    return held_.name;
  }
  // Of an offer in a segment that all map: nothing is missing but, perhaps, memory (Code::memory).
  Result<std::unique_ptr<Arena>> take(const ArenaOffer& offered);
  // Where that failed: the others learn the cause when they come to the arena. Throws nothing.
  void refuse(const ArenaOffer& offered, const Status& cause);
  // In place of `agree`, where all ranks know that nobody will take it up.
  void withdraw(const ArenaOffer& offered);
  // Collective. nullptr where a rank can't reach the memory: no fault, and the first such rank says
  // why. offered: what the leader offered, on all ranks. name: of the communicator, for people. An
  // error is one of the bootstrap's.
  Result<std::unique_ptr<Arena>> agree(const ArenaOffer& offered, const std::string& name);

 private:
  struct Answer {
    bool good;  // it found what was offered
    ArenaOffer next;
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

// What a rank tells the others of its arena when they come to it.
struct ArenaGreeting {
  Locality locality;
  uint64_t round_trip = 0;  // to the other one of two, as measured before; 0: it was not
  Fetcher::Introduction introduction{};
  bool tries = false;        // whether they reach each other's memory
  bool has_met_all = false;  // before, in other teams
  bool reached_all = false;  // whom it has met
};

// Collective over the arena's ranks: everybody's greeting, in rank order, and whether all can read
// all the others' memory; then the arena's rounds have the fetcher. It is tried between those that
// have not met in earlier teams, if all ranks want it (tries). Of `mine` the caller gives locality,
// round_trip and tries. An error where the wait was given up. Throws std::bad_alloc, before
// anything is said.
Status greet(Arena& arena, Patience& patience, ArenaGreeting mine,
             std::vector<ArenaGreeting>* greetings);

// Where ranks that set a team up in an arena did not meet in a round.
Status why_not_met(const Rounds& rounds);

// Where a fetch or a put failed, of a rank whose memory was said to be in reach.
Status why_not_moved(const Rounds::FailedMove& move);

// Waits for ranks in an arena: as the Waiter does, and looks now and then whether they are alive.
class ArenaPatience final : public Patience {
 public:
  // Asked at every turn, with how long the call has waited for which rank: an error ends the wait.
  using Watch = std::function<Status(std::chrono::nanoseconds waited, Rank rank)>;

  ArenaPatience(Waiter& waiter, Arena& arena, Watch watch)
      : waiter_(waiter), arena_(arena), watch_(std::move(watch)) {}

  void begin() {
    begun_ = gone_ = false;
    look_as_often();
  }
  bool wait(uint32_t rank) override;
  // Why it would wait no longer; ok if it was not that.
  const Status& status() const { return status_; }
  Rank rank() const { return rank_; }  // waited for last

 private:
  static constexpr uint32_t looks_alone = 200;  // at some 20 ns each
  static constexpr uint32_t looks_between_alone = 5;
  static constexpr uint32_t looks_crowded = 1;  // whoever shares this processor may be waited for
  static constexpr uint32_t looks_together_crowded = 100;

  void look_as_often() {
    const bool crowded = waiter_.crowded();
    looks = crowded ? looks_crowded : looks_alone;
    looks_between = crowded ? looks_crowded : looks_between_alone;
    looks_together = crowded ? looks_together_crowded : looks_alone;
    least_together = std::max(waiter_.per_processor(), 3U) - 1;  // processors get unequal shares
  }
  bool look_for_life(Rank rank);

  Waiter& waiter_;
  Arena& arena_;
  const Watch watch_;
  bool begun_ = false;
  Rank rank_ = 0;
  bool gone_ = false;  // the rank waited for; what it left may still be found
  Waiter::Clock::time_point looked_{};
  Status status_;
};

}  // namespace sluice
