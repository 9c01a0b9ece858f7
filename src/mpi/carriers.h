// SPDX-License-Identifier: BSD-3-Clause
//
// The carriers outside the engine that may do calls of one communicator: CUDA IPC (src/ipc) and
// NCCL (src/nccl). This is where the ranks find out which of them could do a call:
//
//   eligible call -> is a vote due? -> tokens -> this rank's vote -> one exchange -> all count the
//   votes (src/engine/ballot.h) -> connect or start what all could use -> who is able
//
// No vote is due while carriers have lost such calls (VoteRecord).
//
// One that the user has named (SLUICE_CUDA_IPC=on, SLUICE_NCCL=on, in that order) does the call if
// it is able. Otherwise trials decide between those that are, the engine and MPI (engine/trials.h).
//
// The members take part in every eligible call of the communicator, in order, on all its ranks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/ballot.h"
#include "src/engine/vote.h"
#include "src/ipc/ipc_calls.h"
#include "src/nccl/offload.h"

namespace sluice {

class Runtime;

class Carriers {
 public:
  // nullptr if no carrier is in question for the team, which is equal on all ranks. Team and
  // runtime must outlive this. communicator: its name, for messages.
  static std::unique_ptr<Carriers> make(Team& team, Runtime& runtime, const Hints& hints,
                                        const std::string& communicator);

  // What has been found out about a call. All but the tokens is equal on all ranks.
  struct Offer {
    bool is_eligible = false;          // a carrier is in question; then such calls have votes
    CarrierSet able = {};              // who could do the call
    const Algorithm* named = nullptr;  // who does it, because the user has named it
    uint64_t longest = 0;              // Vote::longest, of all ranks
    // While they are held, no other communicator of this process uses the carrier.
    std::optional<DeviceSlabs::Token> slabs;
    std::optional<DeviceGroups::Token> groups;

    // Gives back the tokens of those that do not do the call.
    void hold_for(const Algorithm* by) {
      if (by != &routes::ipc) slabs.reset();
      if (by != &routes::nccl) groups.reset();
    }
  };
  // To be called before each call. An error: the call has failed, and the team is broken. refusal:
  // why this rank can't do its part, if it can't. Blocks. May throw std::bad_alloc.
  Status ask(UnplacedCall& unplaced, const Status& refusal, StagingPair& staging, Offer* offer);

  // Does a call for which it is able. An error: as of `ask`. Blocks. May throw std::bad_alloc.
  Status run(const Algorithm& by, UnplacedCall& unplaced, const Offer& offer, StagingPair& staging);

  // To be called when the team is broken.
  void abandon() {
    if (offload_) offload_->abandon();
  }

 private:
  Carriers(Team& team, DeviceSlabs& slabs, DeviceGroups& groups)
      : team_(team), slabs_(slabs), groups_(groups), votes_(team.size()) {}

  CarrierSet find_eligible(const Call& call) const;
  bool may_leave_vote_out(const Call& call, const CarrierSet& asked, const VoteRecord& record);
  VoteRecord& record_of(const Call& call, const CarrierSet& asked);
  VoteSchedule& schedule_of(const Call& call);
  Status vote(UnplacedCall& unplaced, StagingPair& staging, const CarrierSet& asked, Offer* offer);
  Status conclude(const Call& call, const Ballot& ballot, const CarrierSet& asked, Offer* offer);
  Status exchange(const Call& call, const Vote& mine);
  Status fail_mismatch(const Call& call, const Vote& mine);

  Team& team_;
  DeviceSlabs& slabs_;
  DeviceGroups& groups_;
  std::unique_ptr<IpcCalls> ipc_;     // null: no calls by CUDA IPC
  std::unique_ptr<Offload> offload_;  // null: NCCL is off
  // An alltoallv's ranks know no common size, so they vote before calls of any size.
  VoteSchedule schedule_, schedule_of_alltoallv_;
  std::map<std::pair<uint32_t, CarrierSet>, VoteRecord> records_;  // by kind and who is asked
  std::vector<Vote> votes_;  // of all ranks, before the current call
};

}  // namespace sluice
