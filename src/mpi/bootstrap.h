// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator exchange addresses and settings before they have a team: by
// MPI_Allgather on that communicator, the only messages that Sluice sends through MPI. The call
// blocks. It is made where the program's own collective is, so MPI matches it neither with receives
// nor with non-blocking collectives that are pending on the communicator.
#pragma once

#include <string>

#include "src/engine/late_ranks.h"
#include "src/engine/team.h"
#include "src/mpi/real.h"

namespace sluice {

class MpiBootstrap final : public Bootstrap {
 public:
  // function: the MPI call that the program made ("MPI_Bcast"), for messages. timeout: seconds for
  // the whole team set-up; this process is ended when they have passed. 0: no timeout.
  MpiBootstrap(MPI_Comm comm, Rank rank, Rank size, std::string name, const char* function,
               double timeout);

  const std::string& name() const { return name_; }  // the communicator's
  bool has_met() const { return has_met_; }          // this rank has taken part in an exchange
  Rank rank() const override { return rank_; }
  Rank size() const override { return size_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  uint64_t group_fingerprint() const override;

 private:
  MPI_Comm comm_;
  Rank rank_, size_;
  const std::string name_;
  bool has_met_ = false;
  LateRanks late_;
  const Status failed_{
      Code::internal,  // made while there is memory
      std::string("MPI_Allgather failed: perhaps a rank took part without Sluice: ") +
          why_without_sluice};
};

}  // namespace sluice
