// SPDX-License-Identifier: BSD-3-Clause
//
// The composition root: what there is once in a process, made at its first collective and wired
// together here: settings, transport, the engine's Process, MPI's progress, and the keys of
// attributes.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "src/engine/team.h"
#include "src/host/locality.h"
#include "src/mpi/progress_request.h"
#include "src/mpi/real.h"

namespace sluice {

class Communicator;

// Every call is MPI's: with SLUICE_ENABLE=off; and from the entry of MPI_Finalize on, on every
// rank, where libraries still call collectives from callbacks whose order differs between ranks.
extern constinit std::atomic<bool> all_pass;

// Reads SLUICE_ENABLE, once in a process, and sees to all_pass. Made by MPI_Init, or by what comes
// first where the program's MPI_Init did not come by way of Sluice.
bool is_switched_off();

class Runtime {
 public:
  // Made by whoever comes first, from MPI's local functions alone; never destroyed, since programs
  // call MPI from exit handlers. MPI is running.
  static Runtime& get();
  // nullptr if it was never needed.
  static Runtime* get_if_made();

  Process& process() { return process_; }
  // What is wrong with the settings, if anything. No team can be formed then: all ranks of a
  // communicator hear of it when they try, and fail together.
  const Status& failure() const { return failure_; }
  int communicator_keyval() const { return communicator_keyval_; }
  int datatype_keyval() const { return datatype_keyval_; }

  void add(MPI_Comm handle, Communicator* communicator);
  void remove(MPI_Comm handle);
  // nullptr if there is none.
  Communicator* find(MPI_Comm handle);

  // MPI_Finalize begins: ends all teams, says goodbye to peers, prints statistics. Only the first
  // call does anything.
  void close();
  // MPI_Finalize is done everywhere: no peer needs this process any more.
  void disconnect() { process_.endpoint.reset(); }

 private:
  Runtime();
  void make_keyvals();
  Status configure();
  Status open_endpoint();
  void print_statistics();

  const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
  int world_rank_ = 0;
  int communicator_keyval_ = MPI_KEYVAL_INVALID;
  int datatype_keyval_ = MPI_KEYVAL_INVALID;
  ProgressRequest progress_;
  Locator locator_;
  Process process_;
  Status failure_;
  std::mutex mutex_;
  std::map<MPI_Comm, Communicator*> communicators_;
};

}  // namespace sluice
