// SPDX-License-Identifier: BSD-3-Clause
//
// Gives MPI its progress while Sluice waits. A peer may be in MPI_Recv of a message that this rank
// sent with MPI_Isend before it entered a collective, and MPI moves only when it is called. Testing
// a generalized request that is never completed calls it: locally, for some 40 ns, and with every
// transport.
#pragma once

#include <atomic>

#include "src/mpi/real.h"

namespace sluice {

class ProgressRequest {
 public:
  bool start();
  // Any thread that may call MPI; returns at once where another is at it.
  void poke();
  // Completes and frees the request, which MPI_Finalize waits for. Pokes are idle from then on.
  void end();

 private:
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> alive_{false};
  MPI_Request request_;
};

}  // namespace sluice
