// SPDX-License-Identifier: BSD-3-Clause
//
// What Sluice keeps for each communicator: its team, and memory for packing. It hangs on the
// communicator as an attribute, is made at the communicator's first collective, or with its first
// hints, and goes when the communicator is freed. (A duplicate does not inherit it; neither Open
// MPI nor MPICH passes hints on to duplicates.)
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "src/engine/hints.h"
#include "src/engine/team.h"
#include "src/mpi/placement.h"
#include "src/mpi/repeat.h"
#include "src/mpi/thread_state.h"

namespace sluice {

class MpiBootstrap;
class Runtime;

class Communicator {
 public:
  Communicator(MPI_Comm handle, Runtime& runtime);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const { return rank_; }
  Rank size() const { return size_; }
  // All its calls go to MPI: an intercommunicator; one of a single rank, which has nothing to
  // carry, but in MPICH (4.0.2's own allgatherv puts such a rank's block in the wrong place); or
  // its ranks have agreed to.
  bool is_left_to_mpi() const { return keeper_ == Keeper::mpi; }

  // Runs a call of `function` ("MPI_Bcast"), and forms the team at the first. False if MPI is to do
  // it, on all ranks alike; nothing has happened then. Failures have been told to the program when
  // it returns; *result is what the function returns. One thread at a time.
  // exchange: nullptr where this rank had no memory to describe the call.
  bool perform(const char* function, Function row, const Arguments& arguments, Exchange* exchange,
               int* result);

  // What was performed last of a function; nullptr: nothing. A call that is the same may be made as
  // its repetition; false if its buffers take a closer look, and nothing has happened.
  Repeat* last(Function row) const { return last_[static_cast<size_t>(row)].get(); }
  bool repeat(Repeat& last, const Buffers& buffers, int* result);

  // What carried the last call that Sluice could carry; nullptr: MPI, or there was none.
  const Algorithm* last_algorithm() const { return last_algorithm_; }

  // Collective: the program gives new hints, which add to those there are. The next call forms a
  // team anew.
  void give_hints(const Hints& hints);
  // Those given, or those in force once there is a team.
  const Hints& hints() const { return hints_; }

  // Ends the team; what follows is MPI's.
  void leave_to_mpi();
  // Every call fails from now on, here and on the others, which learn it at this rank's next; for
  // lack of memory.
  void give_up();

 private:
  enum class Keeper { undecided, team, mpi };

  bool is_mpis() const {
#ifdef OPEN_MPI
    if (size_ == 1) return true;
#endif
    return is_inter_ != 0;
  }
  Status form_team(const char* function);
  void stay_away(const char* function);
  void end_team(Keeper next);
  bool carry(const char* function, Function row, const Arguments& arguments, Exchange* exchange,
             Status* status);
  void keep(const char* function, Function row, const Arguments& arguments,
            const Exchange& exchange, const Algorithm* algorithm);
  Status run(const char* function, const Algorithm& algorithm, Exchange& exchange);
  std::string name() const;
  int fail(const char* function, const Status& status);

  const MPI_Comm handle_;
  Runtime& runtime_;
  Rank rank_ = 0, size_ = 0;
  int is_inter_ = 0;
  Keeper keeper_ = Keeper::undecided;
  std::unique_ptr<Team> team_;
  const Status no_memory_{Code::memory, "no memory"};  // made while there is some
  Status broken_;
  bool reported_ = false;
  bool is_missed_ = false;  // broken, and not all others may know: they wait in a set-up
  Hints hints_;
  Staging input_, output_;
  std::array<std::unique_ptr<Repeat>, function_count> last_;
  const Algorithm* last_algorithm_ = nullptr;
};

// While it lives, this thread frees a communicator: its state is gone, and MPI calls the program's
// callbacks for attributes, in an order that may differ between ranks. Their collectives on it are
// MPI's, on all of its ranks alike.
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

// There was no memory for the state of a communicator, which one is not known. Its other ranks
// count calls that this one has not taken part in: all that get theirs later give up.
extern std::atomic<bool> communicators_missed;

// The state of a communicator, made if it has none. nullptr where the call is for MPI to judge: the
// null communicator, one that is being freed, and before MPI_Init.
Communicator* look_up_communicator(MPI_Comm handle);

// The same, without making one: nullptr too where there is none yet.
Communicator* find_existing_communicator(MPI_Comm handle);

// The same if it is what this thread looked up last; else nullptr.
inline Communicator* last_communicator(MPI_Comm handle) {
  const ThreadState& thread = this_thread;
  const bool holds =
      thread.communicator_handle == handle &&
      thread.communicator_generation == communicators_freed.load(std::memory_order_acquire);
  return holds ? thread.communicator : nullptr;
}

}  // namespace sluice
