// SPDX-License-Identifier: BSD-3-Clause
//
// What the face keeps for each thread: the guard against recursion, and what the last call looked
// up, which most programs' next call needs again. Constant-initialised and trivial, so that reading
// it is one instruction.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/mpi/datatypes.h"
#include "src/mpi/real.h"
#include "src/mpi/reductions.h"

namespace sluice {

class Communicator;
class FreedCommunicator;
class FreedDatatype;

// Handles are used again by MPI once freed: what was looked up for one holds until the count of
// freed objects that Sluice knew changes.
extern constinit std::atomic<uint64_t> communicators_freed;
extern constinit std::atomic<uint64_t> datatypes_freed;

// Whether several threads may be in MPI at once. Programs have some below MPI_THREAD_MULTIPLE too,
// which MPI libraries survive: what threads share is locked always. True at that level, and once
// a second thread has called a collective.
extern constinit std::atomic<bool> threads_call_mpi;

// Asks MPI for its level.
void note_threads();
// This thread calls a collective.
void note_this_thread();

struct ThreadState {
  bool inside = false;  // in Sluice: MPI calls made here are MPI's
  bool noted = false;   // note_this_thread()

  MPI_Comm communicator_handle{};
  uint64_t communicator_generation = 0;
  Communicator* communicator = nullptr;

  // A call has at most two types.
  MPI_Datatype datatype_handle[2]{};
  uint64_t datatype_generation[2]{};
  const Datatype* datatype[2]{};
  uint32_t next_datatype = 0;
  const Datatype* passing_datatype = nullptr;  // of this call: met for the first time in it

  // What this thread is freeing now, the innermost first: callbacks may free other things.
  const FreedCommunicator* freed_communicator = nullptr;
  FreedDatatype* freed_datatype = nullptr;

  // Predefined types and operations are never freed.
  MPI_Datatype reduced_datatype{};
  MPI_Op reduced_op{};
  Reducible reducible;
};

extern constinit thread_local ThreadState this_thread __attribute__((tls_model("initial-exec")));

}  // namespace sluice
