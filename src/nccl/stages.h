// SPDX-License-Identifier: BSD-3-Clause
//
// How far a communicator is on its way to NCCL, and what it does about a vote. Starting NCCL takes
// seconds and much memory, so all data must have been on devices in two votes in a row. All ranks
// make equal calls, with equal findings.
#pragma once

#include <cstdint>

#include "src/engine/ballot.h"

namespace sluice {

class NcclStages {
 public:
  enum class Stage : uint8_t {
    watching,  // whether all ranks' buffers are on devices
    starting,  // NCCL's communicator is being made
    ready,
    failed,  // never again
  };
  enum class Action : uint8_t {
    carry_on,  // the call goes its usual way
    start,     // so does this one, and NCCL's communicator is to be made
    run,       // NCCL carries the call
    give_up,   // as carry_on, and NCCL will not be used: to be said once
  };
  static constexpr uint32_t enough = 2;          // votes with all on devices, in a row
  static constexpr uint32_t most_refusals = 64;  // in a row, before it watches again

  Action learn(const Finding& finding);
  Stage stage() const { return stage_; }

 private:
  void enter(Stage stage);
  Action watch(const Finding& finding);
  Action refuse(const Finding& finding);

  Stage stage_ = Stage::watching;
  uint32_t in_a_row_ = 0;  // votes with all on devices, or refusals
};

}  // namespace sluice
