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

// Runs a call; false if MPI is to do it. *is_awaited: then set if the communicator has to know when
// MPI has done it. further: nullptr if there are none; must live until then.
bool carry(const Row& row, const Arguments& arguments, FurtherBuffers* further, bool* is_awaited,
           int* result);

// To be called when MPI has done a call that is awaited: who awaits it. nullptr if nobody does any
// longer, because MPI's error handler has freed the communicator.
Communicator* find_awaiting(MPI_Comm handle);

}  // namespace sluice
