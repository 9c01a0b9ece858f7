// SPDX-License-Identifier: BSD-3-Clause
//
// When a team's ranks reserve slots in their arena, and when they give them back. A team has none
// until its first call that needs them, and gives them back after many calls that did not, or when
// its communicator is freed. All of it depends on what all ranks count and agree on alike.
#pragma once

#include <cstdint>
#include <utility>

#include "collectives/algorithm.h"
#include "src/base/status.h"
#include "transports/arena.h"

namespace sluice {

class Slots {
 public:
  // After so many calls without them slots are given back. Each time that they were needed again
  // after all, it takes twice as many.
  static constexpr uint32_t first_idle = 256, most_idle = uint32_t{1} << 20;
  // A team whose ranks could not reserve slots tries again after so many calls.
  static constexpr uint32_t before_retry = 1000;

  explicit Slots(Arena& arena)
      : arena_(arena), shortest_(ArenaLine::inlined / arena.rounds().size()) {}

  // Whether `prepare` has to look at a direct call before it runs. number: of the call, equal on
  // all ranks; each call has the next one, or nearly so.
  bool concern(const Algorithm& algorithm, size_t bytes, uint32_t number) const {
    const bool is_due = static_cast<int32_t>(number - due_) >= 0;
    return static_cast<uint32_t>(algorithm.slots) | static_cast<uint32_t>(bytes > shortest_) |
           static_cast<uint32_t>(is_due);
  }
  // Reserves slots if the call needs some and there are none, gives them back if they are idle. All
  // ranks', alike. lack: not all ranks can reserve them, and the call must go another way; failed:
  // the wait for the others was given up, or they are in another call (what, bytes: as in
  // Rounds::begin).
  enum class Answer { go, lack, failed };
  Answer prepare(bool needs, uint32_t number, uint32_t what, size_t bytes, Patience& patience);
  // After `lack`: why this rank could not; ok if it could, if a rank before it could not either, or
  // if it was told before.
  Status take_why() { return std::exchange(why_, {}); }
  // The team is no longer used, or will be used again only after all ranks have met.
  void give_back();

 private:
  Answer reserve(uint32_t number, uint32_t what, size_t bytes, Patience& patience);

  Arena& arena_;
  const size_t shortest_;  // no collective of so many bytes needs slots, unless its algorithm does
  uint32_t due_ = 0;       // the number at which to look for idle slots
  uint32_t idle_ = first_idle;
  uint32_t retry_ = 0;  // while they lack
  bool held_ = false, lack_ = false, had_ = false;
  Status why_;
};

}  // namespace sluice
