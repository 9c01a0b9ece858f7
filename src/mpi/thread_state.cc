// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/thread_state.h"

#include <utility>

namespace sluice {

constinit std::atomic<uint64_t> communicators_freed{0};
constinit std::atomic<uint64_t> datatypes_freed{0};
constinit std::atomic<bool> threads_call_mpi{false};
constinit thread_local ThreadState this_thread;

void note_threads() {
  int level = MPI_THREAD_SINGLE;
  real().Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) threads_call_mpi = true;
}

void note_this_thread() {
  static constinit std::atomic<bool> any{false};
  if (std::exchange(this_thread.noted, true)) return;
  if (any.exchange(true)) threads_call_mpi = true;
}

}  // namespace sluice
