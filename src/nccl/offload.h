// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of one communicator that NCCL carries. Before such a call the ranks vote
// (src/engine/vote.h), because where a rank's buffers lie, and whether NCCL works there, is known
// to that rank alone.
//
//   what all votes say (stages.h):
//     run:   NCCL could carry the call
//     start: a group is begun, and is ready some calls later; this call goes its usual way
//     else:  the usual way
//
// The members take part in every vote of the communicator about NCCL, in order, on all its ranks.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/log.h"
#include "src/engine/ballot.h"
#include "src/engine/routes.h"
#include "src/engine/team.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"
#include "src/memory/whereabouts.h"
#include "src/nccl/device_group.h"
#include "src/nccl/device_job.h"
#include "src/nccl/stages.h"

namespace sluice {

// NCCL's library, opened when it is first needed.
class NcclLibrary {
 public:
  // Opens it, if that has not been tried. False: it cannot be used, see why_not(). shares: also
  // where the program uses NCCL itself.
  bool open(bool shares);
  // Once it is open.
  const SluiceNccl* operator->() const { return nccl_; }
  const SluiceNccl& operator*() const { return *nccl_; }
  uint32_t version() const { return static_cast<uint32_t>(library_.version); }
  const std::string& why_not() const { return failure_.message(); }

 private:
  const SluiceNccl* nccl_ = nullptr;
  SluiceNcclLibrary library_{};
  bool was_tried_ = false;
  Status failure_;
};

class Offload {
 public:
  // nullptr if NCCL is off for this communicator, which is equal on all ranks. value: of the hint
  // sluice_nccl; empty: SLUICE_NCCL decides. Team, groups and knobs must outlive this.
  static std::unique_ptr<Offload> make(Team& team, DeviceGroups& groups, const Knobs& knobs,
                                       const std::string& hint, const std::string& communicator);

  // Whether the call is one that the ranks may vote on. Equal on all ranks.
  bool is_eligible(const Call& call) const;
  // Whether the user wants it to do all calls that it can do. Else trials decide (trials.h).
  bool is_named() const { return mode_ == Mode::on; }

  // What follows are the steps of an eligible call before which the ranks vote. All may throw
  // std::bad_alloc.
  // Fills in what this rank says of NCCL. token: of the groups; it is held until the call ends.
  void vote(const UnplacedCall& unplaced, const DeviceGroups::Token& token, StagingPair& staging,
            Vote* vote);
  // To be called when all have voted. *able: whether NCCL could carry the call. Begins to start
  // NCCL, or gives it up, if that is what follows. An error: the team is broken. Blocks.
  Status conclude(const Call& call, const Finding& finding, std::span<const Vote> votes,
                  const DeviceGroups::Token& token, bool* able);
  // Carries a call that it could carry. An error: the call has failed, and the team is broken.
  // Blocks.
  Status run(UnplacedCall& unplaced, StagingPair& staging);
  bool is_starting() const { return stages_.stage() == NcclStages::Stage::starting; }

  // To be called when the team is broken: other ranks may have aborted their part of the group. It
  // stays if another communicator has used it since.
  void abandon();

 private:
  enum class Mode : uint8_t { automatic, on };

  Offload(Team& team, DeviceGroups& groups, const Knobs& knobs, Mode mode, const char* silence,
          const std::string& communicator);
  using Id = std::array<char, sluice_nccl_id>;

  size_t most_groups() const { return static_cast<size_t>(knobs_.nccl_groups); }
  bool asks_for_other_carriers() const;
  Lack check_device(Vote* vote);
  Lack check_group(DeviceGroup& group, Vote* vote);
  Lack report_end(const DeviceGroup& group);
  Lack reserve(DeviceGroup& group, const UnplacedCall& unplaced, StagingPair& staging);
  bool find_library(Ability* mine);
  Status start(const Call& call, const Finding& finding);
  Status agree_on_id(const Call& call, bool* able, Id* id);
  void use(DeviceGroup& group);
  void abort();
  Status run_on_host(UnplacedCall& unplaced, const NcclTerms& terms, StagingPair& staging);
  Status run_job(const Call& call);
  bool is_quiet();
  void tell_here(Level level, const std::string& why);
  void report(const Finding& finding);

  Team& team_;
  DeviceGroups& groups_;
  const Knobs& knobs_;
  const Mode mode_;
  const char* const silence_;       // what switches NCCL off, for messages
  const std::string communicator_;  // its name, for messages
  const uint64_t id_;               // among all of this process
  std::vector<ProcessId> processes_;
  NcclStages stages_;
  NcclLibrary nccl_;
  Whereabouts data_;           // of the current call
  bool is_on_device_ = false;  // its data, where the group can use it
  DeviceJob job_;
  uint64_t group_ = 0;  // the id of the group that it has begun, or used, last
  std::string why_;     // this rank lacks something, at its last vote; empty: nothing more to say
  uint32_t announced_ = 0;  // reasons that all ranks know, a bit for each
  bool has_told_ = false, has_carried_ = false;
};

}  // namespace sluice
