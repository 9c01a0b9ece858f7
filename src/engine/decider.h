// SPDX-License-Identifier: BSD-3-Clause
//
// Who does a team's calls. This is where it is decided, equally on all ranks; the first that
// applies decides:
//
//   a setting or a hint for the collective   selection.h   an algorithm, or MPI; it is not tried
//   a rule of SLUICE_RULES                   rules.h       likewise
//   the rules that ship with Sluice          rules.h       MPI, or an algorithm, which is tried
//                                                          if it may be (trials.h):
//     trials, or the file of an earlier job                that algorithm, MPI, CUDA IPC or NCCL,
//                                                          whichever was the fastest
//     it is not tried, and NCCL is able                    NCCL: the user has asked for it
//
// (Carriers that the user has named, by SLUICE_CUDA_IPC=on or SLUICE_NCCL=on, come before all that:
// src/mpi/carriers.h, which also finds out by votes which carriers are able.)
#pragma once

#include <span>
#include <string>

#include "src/engine/routes.h"
#include "src/engine/selection.h"
#include "src/engine/team.h"
#include "src/engine/trials.h"

namespace sluice {

class Decider {
 public:
  // name: of the communicator; may change. hosts: as in Shape. All must outlive this.
  Decider(Team& team, Process& process, const std::string& name, Rank rank, Rank ranks,
          std::span<const uint32_t> hosts)
      : selection_(process, name, rank, ranks, hosts),
        trials_(team, selection_, ranks, hosts, process.knobs, name) {}

  // What is decided without trials.
  Selection& selection() { return selection_; }
  Trials& trials() { return trials_; }

  // As of Team. shm: shared-memory algorithms can serve.
  Status find_way(const Call& call, bool shm, const CarrierSet& able, Way* way) {
    const Choices::From& ruled = selection_.find(call, shm);
    *way = {.by = ruled.algorithm ? Way::By::sluice : Way::By::mpi, .algorithm = ruled.algorithm};
    Status status = may_try(ruled) ? trials_.find_way(call, able, way) : Status();
    const auto [ipc, nccl] = able;
    if (!way->of && nccl) *way = {.by = Way::By::sluice, .algorithm = &routes::nccl};
    return status;
  }
  Team::Say say_of(const Call& call, bool shm, Carrier carrier);
  bool goes_without(const CarrierSet& able, const Call& call, bool shm) {
    const Choices::From& ruled = selection_.find(call, shm);
    return may_try(ruled) && trials_.go_without(able, call, *ruled.algorithm);
  }

 private:
  bool may_try(const Choices::From& ruled) const {
    return ruled.algorithm && ruled.is_open && trials_.are_on();
  }

  Selection selection_;
  Trials trials_;
};

}  // namespace sluice
