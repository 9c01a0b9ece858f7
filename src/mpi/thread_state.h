// SPDX-License-Identifier: BSD-3-Clause
//
// What src/mpi keeps for each thread: the guard against recursion, and the results of the last
// look-ups of communicators and datatypes, which the next call of most programs needs again.
// Constant-initialised and trivial, so that reading it is one instruction.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/mpi/real.h"

namespace sluice {

class Communicator;
class FreedCommunicator;
class FreedDatatype;
class NonblockingCall;
struct Datatype;

// MPI reuses the handles of freed objects. So the result of a look-up is valid only until the count
// of freed objects changes; objects that Sluice did not know are not counted.
extern constinit std::atomic<uint64_t> communicators_freed;
extern constinit std::atomic<uint64_t> datatypes_freed;

// Whether several threads may be in MPI at once. True at MPI_THREAD_MULTIPLE, and once a second
// thread has called a collective: some programs do that below this level, and MPI libraries survive
// it. So what threads share is always locked.
extern constinit std::atomic<bool> threads_call_mpi;

// Asks MPI for its thread level, for threads_call_mpi.
void note_threads();
// Records that this thread calls collectives, for threads_call_mpi.
void note_this_thread();

struct ThreadState {
  bool inside = false;  // in Sluice: MPI does the calls made meanwhile
  bool noted = false;   // note_this_thread()

  MPI_Comm communicator_handle{};
  uint64_t communicator_generation = 0;
  Communicator* communicator = nullptr;

  // A call has at most two types.
  MPI_Datatype datatype_handle[2]{};
  uint64_t datatype_generation[2]{};
  const Datatype* datatype[2]{};
  uint32_t next_datatype = 0;
  const Datatype* passing_datatype = nullptr;  // first used in this call, and valid for it

  // Non-blocking calls whose failure a wait of this thread has seen, and it has not reported yet.
  NonblockingCall* failed_calls = nullptr;
  bool only_looks = false;  // it asks for a request's status, and does not complete it

  // What this thread is freeing, innermost first: attribute callbacks may free other objects.
  const FreedCommunicator* freed_communicator = nullptr;
  FreedDatatype* freed_datatype = nullptr;
};

extern constinit thread_local ThreadState this_thread __attribute__((tls_model("initial-exec")));

// While it exists, calls that MPI or its callbacks make on this thread bypass Sluice.
class Inside {
 public:
  Inside() { this_thread.inside = true; }
  ~Inside() { this_thread.inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace sluice
