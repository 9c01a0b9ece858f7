// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of one communicator that go from device to device by CUDA IPC: its ranks are on one host,
// all data of the call is dense on devices, and the ranks have opened each other's slabs
// (device_slabs.h). No byte crosses the host then. Before such a call the ranks vote
// (src/engine/vote.h); slab_phases.h says what each does in it. Between two phases the ranks meet
// in one small exchange of the team, in which each says that its part is done, or why it has
// failed: then all fail alike.
//
//   what all votes say: connect -> offers (each rank's slab) -> all open all slabs -> reports -> go
//                       go      -> run
//
// The members take part in every vote of the communicator about IPC, in order, on all its ranks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/log.h"
#include "src/engine/ballot.h"
#include "src/engine/routes.h"
#include "src/engine/team.h"
#include "src/ipc/device_slabs.h"
#include "src/ipc/slab_offer.h"
#include "src/ipc/slab_phases.h"
#include "src/memory/device_stream.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"
#include "src/memory/whereabouts.h"

namespace sluice {

class IpcCalls {
 public:
  // nullptr if no call of the team goes this way, which is equal on all ranks: with `auto`, unless
  // a rank had a driver when the team was set up. Team, slabs and knobs must outlive this.
  // communicator: its name, for messages.
  static std::unique_ptr<IpcCalls> make(Team& team, DeviceSlabs& slabs, const Knobs& knobs,
                                        const std::string& communicator);

  // Whether the call is one that the ranks may vote on. Equal on all ranks.
  bool is_eligible(const Call& call) const;
  // Whether the user wants it to do all calls that it can do. Else trials decide (trials.h).
  bool is_named() const { return knobs_.cuda_ipc == "on"; }

  // What follows are the steps of an eligible call before which the ranks vote. All may throw
  // std::bad_alloc.
  // Fills in what this rank says of IPC. token: of the slabs; it is held until the call ends.
  void vote(const UnplacedCall& unplaced, const DeviceSlabs::Token& token, Vote* vote);
  // What `count_votes` must know.
  void complete(const Call& call, Question* question) const;
  // To be called when all have voted. *goes: whether the call is to be run. Connects the ranks'
  // slabs if that is in the way. An error: the team is broken. Blocks.
  Status conclude(const Call& call, const Ballot& ballot, std::span<const Vote> votes, bool* goes);
  // An error: the call has failed, and the team is broken. Blocks.
  Status run(UnplacedCall& unplaced, size_t longest, StagingPair& staging);

 private:
  using Slab = DeviceSlabs::Slab;

  IpcCalls(Team& team, DeviceSlabs& slabs, const Knobs& knobs, const std::string& communicator);

  Lack check_device(const Call& call, Vote* vote);
  Status try_kernel(const Call& call, Slab& slab);
  Status connect(const Call& call, std::span<const Vote> votes, bool* connected);
  Status tell_offers(const Call& call, std::vector<SlabOffer>* offers);
  RankReport open_all(const std::vector<SlabOffer>& offers, std::span<const Vote> votes);
  Status gather_reports(const Call& call, const RankReport& mine, Rank* ill, RankReport* report);
  void begin(const Call& call, const SlabWork& work, DeviceStream& stream);
  std::byte* address_of(const Call& call, const SlabWork::Spot& spot) const;
  Status synchronize(const Call& call, const Status& own);
  Status abandon(const Call& call, const Status& why);
  void report(const Finding& finding);
  void tell(uint32_t reason, Level level, const std::string& text);
  template <typename Record>
  Status exchange(const Call& call, const Record& mine);
  template <typename Record>
  Record record_of(Rank rank) const;

  Team& team_;
  DeviceSlabs& slabs_;
  const Knobs& knobs_;
  const std::string communicator_;
  const SluiceIpc* ipc_ = nullptr;   // once it was needed
  Whereabouts data_;                 // of the current call
  int last_device_ = -1;             // of a call that went this way
  std::string why_;                  // this rank lacks something, at its last vote
  std::vector<std::byte> packed_;    // all ranks' records of an exchange
  std::vector<uint64_t> connected_;  // ids of the slabs that all ranks have opened; empty: none
  std::vector<std::byte*> memory_;   // these slabs, where this rank has them
  std::vector<SlabWork> works_;
  uint32_t told_ = 0;  // reasons, a bit for each
};

}  // namespace sluice
