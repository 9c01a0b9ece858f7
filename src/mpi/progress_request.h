// SPDX-License-Identifier: BSD-3-Clause
//
// Lets MPI progress while Sluice waits. A peer may be in MPI_Recv of a message that this rank sent
// with MPI_Isend before it entered a collective, and MPI progresses only when it is called.
// MPI_Test on a generalized request that never completes is such a call: it is local, takes some 40
// ns, and works with every transport of MPI.
#pragma once

#include <atomic>

#include "src/mpi/real.h"

namespace sluice {

class ProgressRequest {
 public:
  bool start();
  // Any thread that may call MPI; returns at once if another thread is in it.
  void progress_mpi();
  // Completes and frees the request, for which MPI_Finalize would wait. Later calls do nothing.
  void end();

 private:
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> alive_{false};
  MPI_Request request_;
};

}  // namespace sluice
