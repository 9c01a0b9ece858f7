// SPDX-License-Identifier: BSD-3-Clause
//
// What the functions that programs call have in common: from the arguments of a call to its
// communicator.
#pragma once

#include <span>
#include <vector>

#include "src/mpi/communicators.h"
#include "src/mpi/describe.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/runtime.h"
#include "src/mpi/thread_state.h"

namespace sluice {

// A row of the table (functions.h), or a function that makes its calls.
struct Row {
  const char* function;
  Function row;
  bool (*describe)(const Arguments& arguments, Position position, Exchange* exchange);
  int (*attempt)(const Probe& probe);
  int (*call)(const Arguments& arguments);  // MPI's own function; counts are ints
  // That of the name which the program has called: MPI_X or MPI_X_c. For alltoall and alltoallv.
  int (*call_alike)(const Arguments& arguments) = nullptr;
};

// Further buffers of a call, of the output's type and count (UnplacedCall::others).
struct FurtherBuffers {
  std::span<void* const> buffers;
  std::vector<Side> sides;

  // Makes them part of the call. May throw std::bad_alloc.
  void attach(Exchange* exchange);
};

// Whether this call bypasses Sluice.
inline bool is_passing() { return this_thread.inside || all_pass.load(std::memory_order_relaxed); }

// Runs a call, by whoever is to do it; false: MPI is, with the program's arguments. further:
// nullptr if there are none.
bool carry(const Row& row, const Arguments& arguments, FurtherBuffers* further, int* result);

}  // namespace sluice
