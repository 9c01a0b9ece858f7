// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a team that share a host come to an arena, and how they wait in it.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "src/engine/call.h"
#include "src/engine/team.h"
#include "src/engine/waiter.h"
#include "transports/arena.h"

namespace sluice {

// Collective over the bootstrap's ranks. nullptr where one of them can't reach the memory: no
// fault, and the first such rank says why. An error where a rank gave up waiting, or has no memory
// for this; those that come later learn that here, or from the arena. May throw std::bad_alloc, but
// only when all exchanges are over.
Result<std::unique_ptr<Arena>> agree_on_arena(ArenaSource& source, Bootstrap& bootstrap,
                                              std::span<const ProcessId> processes,
                                              const std::string& name);

// In place of that, by a rank that has given up before it: what all others will learn there.
void leave_arena_agreement(Bootstrap& bootstrap, Code why);

// Collective over the arena's ranks: whether all can read all the others' memory; then its rounds
// have the fetcher. An error where the wait was given up.
Status agree_on_fetching(Arena& arena, Patience& patience);

// Where ranks that set a team up in an arena did not meet in a round.
Status why_not_met(const Rounds& rounds);

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
  static constexpr uint32_t looks_crowded = 1;  // whoever shares this processor may be waited for
  static constexpr uint32_t looks_together_crowded = 100;

  void look_as_often() {
    looks = waiter_.crowded() ? looks_crowded : looks_alone;
    looks_together = waiter_.crowded() ? looks_together_crowded : looks_alone;
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
