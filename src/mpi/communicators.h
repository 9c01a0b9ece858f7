// SPDX-License-Identifier: BSD-3-Clause
//
// The communicators that have state, from their first look-up until they are freed or MPI ends.
#pragma once

#include <atomic>

#include "src/mpi/communicator.h"
#include "src/mpi/thread_state.h"

namespace sluice {

// Exists while this thread frees a communicator. Its constructor deletes Sluice's state. Then MPI
// calls the program's attribute callbacks, in an order that may differ between ranks. So
// collectives that they call on this communicator are left to MPI, on all its ranks.
class FreedCommunicator {
 public:
  explicit FreedCommunicator(MPI_Comm handle);
  ~FreedCommunicator();
  FreedCommunicator(const FreedCommunicator&) = delete;
  FreedCommunicator& operator=(const FreedCommunicator&) = delete;

  static bool is_freed(MPI_Comm handle);

 private:
  const MPI_Comm handle_;
  const FreedCommunicator* const outer_;
};

// True once there was no memory for the state of a communicator; which one is not recorded. Its
// other ranks count a call in which this rank took no part. So every communicator whose state is
// made later gives up.
extern std::atomic<bool> communicators_missed;

// The state of a communicator, made if it has none. nullptr if the handle is for MPI to judge: the
// null communicator, an invalid one, one that is being freed, or outside MPI_Init to MPI_Finalize.
Communicator* look_up_communicator(MPI_Comm handle);

// Like look_up_communicator, but makes no state: nullptr if there is none yet.
Communicator* find_existing_communicator(MPI_Comm handle);

// Has all teams hand over what they have counted. No other thread may be in a call.
void hand_over_all_counts();

// The state, if this thread looked it up last and no communicator was freed since; else nullptr.
// Takes no lock.
inline Communicator* last_communicator(MPI_Comm handle) {
  const ThreadState& thread = this_thread;
  const bool holds =
      thread.communicator_handle == handle &&
      thread.communicator_generation == communicators_freed.load(std::memory_order_acquire);
  return holds ? thread.communicator : nullptr;
}

// Called when MPI_Finalize begins: MPI does all later calls. Ends all teams, prints statistics,
// says BYE to peers. Only the first call does anything.
void end_collectives();

}  // namespace sluice
