// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator find each other before they have a team: by a non-blocking gather
// of MPI's, the one thing that Sluice uses MPI for.
#pragma once

#include <string>
#include <vector>

#include "src/base/deadline.h"
#include "src/engine/team.h"
#include "src/mpi/real.h"

namespace sluice {

class MpiBootstrap final : public Bootstrap {
 public:
  // function: the call that brought the program here, for people: "MPI_Bcast". timeout: seconds for
  // each gather, 0: none.
  MpiBootstrap(MPI_Comm comm, Rank rank, Rank size, std::string name, const char* function,
               double timeout);

  const std::string& name() const { return name_; }  // the communicator's
  Rank rank() const override { return rank_; }
  Rank size() const override { return size_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all, Limit limit) override;
  bool leave(std::span<const std::byte> mine) override;
  uint64_t mark() const override;

 private:
  using Clock = Deadline::Clock;
  struct Gather;

  Gather* begin(std::span<const std::byte> mine);
  Status wait(MPI_Request* request, Limit limit);
  void report(Clock::duration waited) const;
  std::string describe(Clock::duration waited) const;

  MPI_Comm comm_;
  Rank rank_, size_;
  std::string name_;
  const char* function_;
  const double timeout_;
  const Status no_memory_{Code::memory, "no memory to set it up"};  // made while there is some
  const Status gave_up_{Code::timeout, "gave up waiting for all ranks (SLUICE_SETUP_TIMEOUT)"};
};

}  // namespace sluice
