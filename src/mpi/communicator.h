// SPDX-License-Identifier: BSD-3-Clause
//
// The state that Sluice keeps for each communicator: its team, its hints, its call cache and its
// staging memory. It is an attribute of the communicator, made at the first collective or with the
// first hints, and deleted when the communicator is freed. (A duplicate does not inherit it;
// neither Open MPI nor MPICH passes hints on to duplicates.)
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "src/engine/hints.h"
#include "src/engine/team.h"
#include "src/memory/placement.h"
#include "src/mpi/carriers.h"
#include "src/mpi/prepared_call.h"
#include "src/mpi/real.h"

namespace sluice {

class MpiBootstrap;
class Runtime;

class Communicator {
 public:
  Communicator(MPI_Comm handle, Runtime& runtime);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const { return handle_; }
  Rank rank() const { return rank_; }
  Rank size() const { return size_; }
  // Whether MPI does all its calls: it is an intercommunicator; it has one rank and the MPI is Open
  // MPI (in MPICH 4.0.2 allgatherv puts the block of a single rank in the wrong place, so Sluice
  // does that); or its ranks agreed to leave them to MPI.
  bool is_left_to_mpi() const { return owner_ >= Owner::mpi; }
  // Whether Sluice may carry non-blocking calls: there is a team. Equal on all ranks.
  bool has_nonblocking() const { return team_ && may_be_in_flight_; }
  Team* team() const { return team_.get(); }
  // For a call that may block, but does not go through `perform`: sets the team up, if that is
  // still to be done. Throws nothing.
  Status prepare_team(const char* function);
  // The same with a new team, in place of the one that it has.
  Status renew_team(const char* function);
  // In place of a part of such a call, for lack of memory: has it fail on all ranks.
  [[gnu::cold]] Status fail_for_memory();
  // Why its calls fail; ok: they do not.
  const Status& broken() const { return broken_; }

  // Decides about a call, and does it unless MPI is to do it; the first call sets the team up.
  // Blocks. Who does it is equal on all ranks. The error handler has been called for a failure. One
  // thread at a time.
  PreparedCall::State perform(PreparedCall& call);
  // These two enclose each call of MPI's function in a call that is `by_mpi`. False: the call has
  // failed; then *result is what the function returns.
  bool enter_mpi(PreparedCall& call, CallByMpi& part, int* result);
  // *result: in, MPI's. Whether MPI is to be called again; otherwise *result is what the function
  // returns. Of a trial made aside, Sluice does the call now.
  bool leave_mpi(const PreparedCall& call, CallByMpi& part, int* result);

  // The call cache of a function; nullptr if there is none. `replay` makes that call again on other
  // buffers.
  enum class Replay {
    done,     // *result is what the function returns
    by_mpi,   // MPI is to do the call, and nobody waits for its end
    refused,  // nothing has happened: the call needs the full check
  };
  CallCache* last(Function row) const { return last_[static_cast<size_t>(row)].get(); }
  Replay replay(CallCache& last, const Buffers& buffers, int* result);

  // The algorithm chosen for the last call that Sluice understood; nullptr if MPI did that call, or
  // if there was none.
  const Algorithm* last_algorithm() const { return last_algorithm_; }
  void note_algorithm(const Algorithm* algorithm) { last_algorithm_ = algorithm; }

  // Collective. Adds the hints that the program gives to the earlier ones, and ends the team. The
  // next call sets up a new team.
  void give_hints(const Hints& hints);
  // The hints given on this rank; once there is a team, the hints in force.
  const Hints& hints() const { return hints_; }

  // Ends the team; MPI does all later calls.
  void leave_to_mpi();
  // For lack of memory: makes every later call fail, on this rank and on the others. These learn of
  // it at this rank's next call.
  void fail_all_calls();

 private:
  enum class Owner { undecided, team, mpi, mpi_always };

  Status form_team(const char* function);
  [[gnu::cold]] Status decide(Exchange& exchange, Carriers::Offer* offer, Way* way);
  void report_failed_rank(const char* function);
  void end_team(Owner next);
  Status carry(PreparedCall& call, PreparedCall::State* state);
  [[gnu::cold]] PreparedCall::State hand_over(PreparedCall& call, bool may_keep);
  [[gnu::cold]] Replay replay_by_mpi(CallCache& last);
  [[gnu::cold]] void try_aside(const char* function, const Exchange& exchange, Way& way);
  Status finish_by_mpi(const char* function, CallByMpi& call, int result);
  void keep(const PreparedCall& call, const Exchange& exchange, const Way& way);
  [[gnu::cold]] std::optional<Status> run_on_device(const char* function,
                                                    const Algorithm& algorithm, Exchange& exchange);
  Status run(const char* function, const Algorithm& algorithm, Exchange& exchange);
  std::string name() const;
  int fail(const char* function, const Status& status);
  [[gnu::cold]] void leave_statistics(const char* function);

  const MPI_Comm handle_;
  Runtime& runtime_;
  Rank rank_ = 0, size_ = 0;
  Owner owner_ = Owner::undecided;
  std::unique_ptr<Team> team_;
  std::unique_ptr<Carriers> carriers_;  // of the team; null: there are none
  Status broken_;
  bool may_be_in_flight_ = false;  // with a team: its non-blocking calls
  bool reported_ = false;
  bool others_may_wait_ = false;  // if broken: others may wait for this rank in a set-up
  Hints hints_;
  StagingPair staging_;
  std::array<std::unique_ptr<CallCache>, function_count> last_;
  // In MPI's function; nullptr: none is. Compared only: the program's function may have been left.
  const PreparedCall* in_mpi_ = nullptr;
  const Algorithm* last_algorithm_ = nullptr;
};

}  // namespace sluice
