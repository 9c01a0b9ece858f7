// SPDX-License-Identifier: BSD-3-Clause
//
// The carriers outside the engine that may do calls of one communicator: CUDA IPC (src/ipc) and
// NCCL (src/nccl). This is where it is decided which one does a call, or none:
//
//   eligible call -> is a vote due? -> tokens -> this rank's vote -> one exchange -> all count the
//   votes (src/engine/ballot.h) -> IPC, if all can; else NCCL, if all can; else the engine or MPI
//
// The members take part in every eligible call of the communicator, in order, on all its ranks.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/ballot.h"
#include "src/engine/vote.h"
#include "src/ipc/device_rounds.h"
#include "src/nccl/offload.h"

namespace sluice {

class Runtime;

class Carriers {
 public:
  // nullptr if no carrier is in question for the team, which is equal on all ranks. Team and
  // runtime must outlive this. communicator: its name, for messages.
  static std::unique_ptr<Carriers> make(Team& team, Runtime& runtime, const Hints& hints,
                                        const std::string& communicator);

  // Which carriers the ranks may vote on before the call. Equal on all ranks.
  std::array<bool, carrier_count> find_eligible(const Call& call) const;

  // For a call with an eligible carrier. Unset: none does it. Otherwise *by has done it, or it has
  // failed, and the team is broken. Blocks. May throw std::bad_alloc.
  std::optional<Status> carry(UnplacedCall& unplaced, Staging& input, Staging& output,
                              const Algorithm** by);

  // To be called when the team is broken.
  void abandon() {
    if (offload_) offload_->abandon();
  }

 private:
  Carriers(Team& team, DeviceSlabs& slabs, DeviceGroups& groups)
      : team_(team), slabs_(slabs), groups_(groups), votes_(team.size()) {}

  Status exchange(const Call& call, const Vote& mine);
  Status fail_mismatch(const Call& call, const Vote& mine);

  Team& team_;
  DeviceSlabs& slabs_;
  DeviceGroups& groups_;
  std::unique_ptr<DeviceRounds> rounds_;  // null: no calls by CUDA IPC
  std::unique_ptr<Offload> offload_;      // null: NCCL is off
  // An alltoallv's ranks know no common size, so they vote before calls of any size.
  VoteSchedule schedule_, schedule_of_alltoallv_;
  std::vector<Vote> votes_;  // of all ranks, before the current call
};

}  // namespace sluice
