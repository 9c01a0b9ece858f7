// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator find each other before they have a team: by MPI_Allgather on it,
// the one thing that Sluice uses MPI for. It blocks, and stands where the program's own collective
// does: so it meets neither receives nor non-blocking collectives that the program or MPI has under
// way there.
#pragma once

#include <string>

#include "src/engine/team.h"
#include "src/mpi/late_ranks.h"
#include "src/mpi/real.h"

namespace sluice {

class MpiBootstrap final : public Bootstrap {
 public:
  // function: the call that brought the program here, for people: "MPI_Bcast". timeout: seconds
  // for all of the set-up, after which this process is ended; 0: none.
  MpiBootstrap(MPI_Comm comm, Rank rank, Rank size, std::string name, const char* function,
               double timeout);

  const std::string& name() const { return name_; }  // the communicator's
  bool has_met() const { return has_met_; }          // this rank has taken part in an exchange
  Rank rank() const override { return rank_; }
  Rank size() const override { return size_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  uint64_t mark() const override;

 private:
  MPI_Comm comm_;
  Rank rank_, size_;
  const std::string name_;
  bool has_met_ = false;
  LateRanks late_;
  const Status failed_{Code::internal,  // made while there is memory
                       "MPI_Allgather failed: perhaps a rank took part without Sluice, because the "
                       "preload did not reach it or SLUICE_ENABLE is off there"};
};

}  // namespace sluice
