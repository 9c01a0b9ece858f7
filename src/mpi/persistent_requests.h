// SPDX-License-Identifier: BSD-3-Clause
//
// The requests of the persistent collectives that Sluice carries. To MPI each is a persistent
// receive of a message from this process to itself, which Sluice sends when the call has ended; so
// all functions of MPI's know it, also beside requests of MPI's own. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "src/base/status.h"
#include "src/mpi/real.h"

namespace sluice {

class PersistentCall;

// How many there are.
extern constinit std::atomic<uint32_t> persistent_requests;
// Starts that have failed, which no wait has reported.
extern constinit std::atomic<uint32_t> failed_starts;

class PersistentRequests {
 public:
  // Never destroyed.
  static PersistentRequests& get();

  // Makes the call's request. False: MPI makes none, or there are too many. May throw
  // std::bad_alloc.
  bool open(PersistentCall& call);

  // To be called when a request is started. nullptr: it is none of these. *was_active: it is
  // started already.
  PersistentCall* begin(MPI_Request request, bool* was_active);
  // It has not been started.
  void take_back(PersistentCall& call);
  // Its call has ended: completes the receive. Then the call may be gone.
  void complete(PersistentCall& call);
  // The program frees a request: its call is deleted, as soon as it has ended. False: it is none of
  // these.
  bool close(MPI_Request request);

  // Why the call of a request has failed that a wait has found done; told once. Ok: it has not, or
  // it is none of these. *comm: of the call.
  Status take_failure(MPI_Request request, MPI_Comm* comm);

  // MPI_Finalize begins, and no call runs: none is started any more.
  void end();

 private:
  bool take_tag(PersistentCall& call);
  void forget(PersistentCall& call);

  std::mutex mutex_;
  std::unordered_map<MPI_Request, PersistentCall*> calls_;
  std::vector<int> free_tags_;  // below next_tag_; it has room for all
  int next_tag_ = 0;
};

// The functions of MPI's that start such requests and free them.
int start_request(MPI_Request* request);
int start_requests(int count, MPI_Request* requests);
int free_request(MPI_Request* request);

// Calls the error handler of the communicator, if the request's call has failed. Returns the error,
// or MPI_SUCCESS.
[[gnu::cold]] int report_failed_start(MPI_Request request);

}  // namespace sluice
