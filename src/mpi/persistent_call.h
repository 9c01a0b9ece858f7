// SPDX-License-Identifier: BSD-3-Clause
//
// A persistent collective that Sluice carries, from its *_init function until its request is freed:
//
//   described -> running -> ended -> completed
//                   ^------------------'
//
// It keeps from start to start what a non-blocking call makes anew: its arguments' description, its
// algorithm, its places in memory, and a part of the team, in which ranks count its starts.
#pragma once

#include "src/engine/team_halves.h"
#include "src/mpi/nonblocking_call.h"

namespace sluice {

class Communicator;

class PersistentCall final : public NonblockingCall {
 public:
  using NonblockingCall::NonblockingCall;
  ~PersistentCall() override;

  // Everything local of *_init that can fail. `part`, of that team, belongs to this from now on.
  // *is_able: whether it has a request. Throws nothing.
  Status open(Team& team, NonblockingTeam& part, const Algorithm& by, bool* is_able);
  // In place of that algorithm.
  void use(const Algorithm& by) { by_ = &by; }
  const Algorithm* algorithm() const { return by_; }
  NonblockingTeam* part() const { return part_; }

  // Sluice's part of MPI_Start. Throws nothing.
  Status start();
  // Calls the communicator's error handler.
  int raise(const Status& status) const;

  void complete() override;
  bool is_owed() const override { return is_in_flight(); }
  // Its team may end: it is not started any more.
  void leave_team();

 private:
  friend class PersistentRequests;

  Status prepare();
  Status place_again();

  Team* team_ = nullptr;
  NonblockingTeam* part_ = nullptr;
  const Algorithm* by_ = nullptr;
  struct {  // under the lock of PersistentRequests
    int tag = 0;
    bool is_active = false;   // started, and not completed
    bool is_freed = false;    // meanwhile
    bool has_failed = false;  // and nobody has reported it
  } shared_;
};

// Makes the request of a persistent collective. False: MPI does. *result: what the function
// returns. Blocks. Who does it is equal on all ranks.
bool init_persistent(const Row& row, const Arguments& arguments, MPI_Request* request, int* result);
// The MPI library has no such function.
int lacks_persistent(const Row& row, MPI_Comm comm);

}  // namespace sluice
