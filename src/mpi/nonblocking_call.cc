// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/nonblocking_call.h"

#include <memory>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "src/mpi/communicators.h"
#include "src/mpi/errors.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/runtime.h"

namespace sluice {

bool NonblockingCall::describe(const Row& row, const Arguments& arguments, Position position) {
  this_thread.passing_datatype = nullptr;
  if (!row.describe(arguments, position, &exchange_)) return false;
  if (is_doubtful(exchange_) && is_error_of_mpi(exchange_, row.attempt)) return false;
  input_type_.replace(&exchange_.input);
  output_type_.replace(&exchange_.output);
  return true;
}

Status NonblockingCall::place() {
  if (!exchange_.refusal.ok()) return exchange_.refusal;
  placement_.emplace(exchange_, staging_, wait_);
  Status status = placement_->begin();
  if (!status.ok() || !exchange_.user_op) return status;
  operation_.emplace(*exchange_.user_op, *datatype_of(exchange_.input));
  exchange_.call.reduction.context = &*operation_;
  return operation_->prepare(exchange_.input.total_elements());
}

bool NonblockingCall::make_request() {
  return real().Grequest_start(query, free, cancel, this, &request_) == MPI_SUCCESS;
}

// Under the lock of `pending_`.
void NonblockingCall::ended(const Status& status) {
  status_ = status;
  if (status_.ok() && operation_) status_ = operation_->failure();
  if (status_.ok()) status_ = placement_->end();
  if (!status_.ok()) status_ = status_.with(name_);
  placement_.reset();
  if (std::exchange(state_, State::ended) == State::described) return;  // (it got no request)
  links_.next_ended = pending_->ended_;
  pending_->ended_ = this;
}

// An empty status. (A failed call's error is reported after the wait, at the handler of its
// communicator.)
int NonblockingCall::query(void*, MPI_Status* status) {
  *status = {};
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return MPI_SUCCESS;
}

int NonblockingCall::free(void* call) {
  auto* const done = static_cast<NonblockingCall*>(call);
  done->pending_->forget(*done);
  if (done->status_.ok()) {
    delete done;
  } else {
    done->links_.next = this_thread.failed_calls;
    this_thread.failed_calls = done;
  }
  return MPI_SUCCESS;
}

// (MPI forbids to cancel such requests.)
int NonblockingCall::cancel(void*, int) { return MPI_ERR_REQUEST; }

int NonblockingCall::report_failures() {
  int result = MPI_SUCCESS;
  while (this_thread.failed_calls) {
    const std::unique_ptr<NonblockingCall> failed(this_thread.failed_calls);
    this_thread.failed_calls = failed->links_.next;
    const bool is_freed = failed->comm_ == real().comm_null;
    const int code = raise_error(is_freed ? real().comm_world : failed->comm_, failed->status_);
    if (result == MPI_SUCCESS) result = code;
  }
  return result;
}

namespace {

// The state of a communicator whose non-blocking calls Sluice may carry: it has a team, which no
// non-blocking call can make, because that blocks. nullptr: MPI does the call. Equal on all ranks.
Communicator* find_with_team(MPI_Comm handle) {
  Communicator* communicator = last_communicator(handle);
  if (!communicator) communicator = find_existing_communicator(handle);
  if (communicator) communicator->note_algorithm(nullptr);  // until Sluice has chosen one
  return communicator && communicator->has_nonblocking() ? communicator : nullptr;
}

// Equal on all ranks; nullptr: MPI does the call. (A thread of Sluice's can't call an operation of
// the program's. A copy from a device may have to wait for the program's own work there, and must
// not be waited for while MPI progresses.)
const Algorithm* choose(Team& team, const NonblockingCall& call, ProgressWay way) {
  if (way == ProgressWay::thread && call.has_own_operation()) return nullptr;
  return team.sees_devices() ? nullptr : team.choose_nonblocking(call.call());
}

int report(MPI_Comm comm, const Status& status) {
  log(Level::error, "%s", status.message().c_str());
  return raise_error(comm, status);
}

}  // namespace

bool start_nonblocking(const Row& row, const Arguments& arguments, MPI_Request* request,
                       int* result) {
  if (is_passing() || !request) return false;
  Communicator* const communicator = find_with_team(arguments.comm);
  if (!communicator) return false;
  Status status = communicator->broken();
  Team& team = *communicator->team();
  Runtime& runtime = Runtime::get();
  try {
    const Inside inside;
    if (!status.ok()) status = runtime.pending().fail(team, status);
    auto call = std::make_unique<NonblockingCall>(row.name, arguments.comm, runtime.process());
    if (!call->describe(row, arguments, {communicator->rank(), communicator->size()})) return false;
    const Algorithm* const by = choose(team, *call, runtime.pending().way());
    if (!by) return false;
    communicator->note_algorithm(by);
    if (status.ok()) status = call->place();
    status = status.ok() ? runtime.pending().start(team, *by, *call)
                         : runtime.pending().fail(team, status.with(row.name));
    if (status.ok()) *request = call.release()->request();
  } catch (const std::bad_alloc&) {
    runtime.process().reserve.release();
    status = runtime.pending().fail(team, runtime.process().no_memory_for_call);
  }
  *result = status.ok() ? MPI_SUCCESS : report(arguments.comm, status);
  return true;
}

}  // namespace sluice
