// SPDX-License-Identifier: BSD-3-Clause
//
// A non-blocking collective that Sluice carries, from its function until the program is done with
// its request, a generalized request of MPI's:
//
//   described -> running -> ended -> completed
//
// It owns all that the call needs, because the program may free the communicator, its types and its
// operation while the call runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "src/engine/call_in_flight.h"
#include "src/memory/placement.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/prepared_call.h"
#include "src/mpi/progress_way.h"
#include "src/mpi/user_operation.h"

namespace sluice {

class NonblockingCall : public CallOwner {
 public:
  enum class State : uint8_t { described, running, ended, completed };

  NonblockingCall(const char* name, MPI_Comm comm, const Process& process)
      : name_(name), comm_(comm), wait_({}, process.knobs, process.oversubscription) {}
  virtual ~NonblockingCall() = default;
  NonblockingCall(const NonblockingCall&) = delete;
  NonblockingCall& operator=(const NonblockingCall&) = delete;

  // False: MPI does the call, or has an error for it. May throw std::bad_alloc.
  bool describe(const Row& row, const Arguments& arguments, Position position);
  // Equal on all ranks; nullptr: MPI does the call. (A thread of Sluice's can't call an operation
  // of the program's. A copy from a device may have to wait for the program's own work there, and
  // must not be waited for while MPI progresses.) has_cells: see Team::choose_nonblocking. May
  // throw std::bad_alloc.
  const Algorithm* choose(Team& team, ProgressWay way, bool has_cells) const;
  // Everything local that can fail. May throw std::bad_alloc.
  Status place();
  // Makes the request. False if MPI can't. Not to be called under the lock of PendingCalls.
  bool make_request();
  // In place of a start. The call remains.
  void drop_request();
  MPI_Request request() const { return request_; }

  const char* name() const { return name_; }
  const Call& call() const { return exchange_.call; }
  const Status& refusal() const { return exchange_.refusal; }
  bool has_own_operation() const { return exchange_.user_op.has_value(); }

  void ended(const Status& status) override;
  // Completes the request. From then on the call may be gone.
  virtual void complete();
  // Whether MPI_Finalize may not find it: the program has yet to wait for it.
  virtual bool is_owed() const { return true; }

  // To be called if this thread has been told of failed calls by MPI's waits: calls the error
  // handler of each one's communicator. Returns the first error. statuses: those of the wait, of
  // which the calls' get their errors.
  static int report_failures(std::span<MPI_Status> statuses);
  // In place of it, if none of the requests has been completed: the thread will be told again.
  static void take_back_failures();

 protected:
  friend class PendingCalls;

  bool is_in_flight() const { return state_ == State::running || state_ == State::ended; }

  static int query(void* call, MPI_Status* status);
  static int free(void* call);
  static void release(NonblockingCall* call);
  void finish(const Status& status);
  static int cancel(void* call, int has_ended);

  const char* const name_;
  MPI_Comm comm_;  // null once it is freed
  State state_ = State::described;
  LoneWait wait_;
  Exchange exchange_;
  Description input_type_, output_type_;
  StagingPair staging_;
  std::optional<Placement> placement_;
  bool stays_placed_ = false;  // after its end, too
  std::optional<UserOperation> operation_;
  MPI_Request request_{};
  Status status_;        // once it has ended
  uint64_t number_ = 0;  // in the order of starts
  // The request and, if the call has failed, the thread that a wait has told of it.
  std::atomic<int> holders_{1};
  std::atomic<bool> is_told_{false};
  PendingCalls* pending_ = nullptr;
  struct {
    NonblockingCall *next_ended = nullptr, *next_failed = nullptr;
    NonblockingCall *next = nullptr, *previous = nullptr;
  } links_;
};

// Starts a non-blocking collective. False: MPI does it. *result: what the function returns.
bool start_nonblocking(const Row& row, const Arguments& arguments, MPI_Request* request,
                       int* result);

}  // namespace sluice
