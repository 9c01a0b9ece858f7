// SPDX-License-Identifier: BSD-3-Clause
//
// When a team's ranks reserve slots in their arena, and when they give them back. A team has none
// until its first call that needs them. It gives them back after many calls that did not, or when
// its communicator is freed. All ranks decide alike, by call numbers and by what they agreed on.
#pragma once

#include <cstdint>
#include <utility>

#include "collectives/algorithm.h"
#include "src/base/status.h"
#include "transports/shm/arena.h"

namespace sluice {

class Slots {
 public:
  // Slots are given back after this many calls that did not need them. The number doubles each time
  // that they are needed again.
  static constexpr uint32_t first_idle = 256, most_idle = uint32_t{1} << 20;
  // If the ranks could not reserve slots, they try again after this many calls.
  static constexpr uint32_t before_retry = 1000;

  explicit Slots(Arena& arena)
      : arena_(arena), shortest_(ArenaLine::inlined / arena.rounds().size()) {}

  // Whether `prepare` must be called before this shared-memory call runs. number: of the call;
  // equal on all ranks, and grows with each call, mostly by one.
  bool concern(const Algorithm& algorithm, size_t bytes, uint32_t number) const {
    const bool is_due = static_cast<int32_t>(number - due_) >= 0;
    return static_cast<uint32_t>(algorithm.slots) | static_cast<uint32_t>(bytes > shortest_) |
           static_cast<uint32_t>(is_due);
  }
  // Reserves slots if the call needs some and there are none; gives them back if they are idle. All
  // ranks call it alike; reserving blocks until all have come. lack: not all ranks can reserve
  // slots, so all send the call's data over links, by a plan. failed: the wait for the others ended
  // early, or they are in another call. signature, bytes: as in Rounds::begin.
  enum class Answer { go, lack, failed };
  Answer prepare(bool needs, uint32_t number, uint32_t signature, size_t bytes,
                 WaitPolicy& wait_policy);
  // After `lack`: why this rank could not reserve slots. Ok if it could, if a lower rank could not
  // either, or if this was asked before.
  Status take_why() { return std::exchange(why_, {}); }
  // To be called if the team is used no more, or only after all ranks have met again.
  void give_back();

 private:
  Answer reserve(uint32_t number, uint32_t signature, size_t bytes, WaitPolicy& wait_policy);

  Arena& arena_;
  const size_t shortest_;  // calls of up to this many bytes need none, unless Algorithm::slots
  uint32_t due_ = 0;       // call number at which to check for idle slots
  uint32_t idle_ = first_idle;
  uint32_t retry_ = 0;  // call number at which to try again after `lack`
  bool held_ = false, lack_ = false, had_ = false;
  Status why_;
};

}  // namespace sluice
