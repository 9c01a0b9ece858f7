// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/nonblocking_call.h"

#include <limits>
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

const Algorithm* NonblockingCall::choose(Team& team, ProgressWay way, bool has_cells) const {
  if (way == ProgressWay::thread && has_own_operation()) return nullptr;
  return team.sees_devices() ? nullptr : team.choose_nonblocking(call(), has_cells);
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

void NonblockingCall::drop_request() {
  real().Grequest_complete(request_);
  real().Request_free(&request_);
}

// Under the lock of `pending_`.
void NonblockingCall::ended(const Status& status) {
  try {
    finish(status);
  } catch (const std::bad_alloc&) {
    status_ = Runtime::get().process().no_memory_for_call;
  }
  if (!stays_placed_) placement_.reset();
  state_ = State::ended;
  pending_->moving_.fetch_sub(1, std::memory_order_relaxed);
  links_.next_ended = pending_->ended_;
  pending_->ended_ = this;
}

void NonblockingCall::finish(const Status& status) {
  status_ = status;
  if (status_.ok() && operation_) status_ = operation_->failure();
  if (status_.ok()) status_ = placement_->end();
  if (!status_.ok()) status_ = status_.with(name_);
}

void NonblockingCall::complete() { real().Grequest_complete(request_); }

namespace {

// In the status of a failed call, until its error has been reported: this and its place in the
// thread's list. (No message has such a tag.)
constexpr int failed_tag = std::numeric_limits<int>::min();

}  // namespace

// Called by MPI in the thread that waits or tests; by MPICH's MPI_Testall twice. An empty status.
// (A failed call's error is reported after that, at the handler of its communicator.)
int NonblockingCall::query(void* call, MPI_Status* status) {
  auto* const done = static_cast<NonblockingCall*>(call);
  *status = {};
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  if (done->status_.ok() || this_thread.only_looks) return MPI_SUCCESS;
  int place = failed_tag;
  NonblockingCall** at = &this_thread.failed_calls;
  for (; *at && *at != done; at = &(*at)->links_.next_failed) ++place;
  if (!done->is_told_.exchange(true)) {
    done->holders_.fetch_add(1, std::memory_order_relaxed);
    *at = done;
  }
  if (*at) status->MPI_TAG = place;
  return MPI_SUCCESS;
}

// (Called by any thread, also by one that has just completed the request.)
int NonblockingCall::free(void* call) {
  auto* const done = static_cast<NonblockingCall*>(call);
  if (done->state_ == State::described) return MPI_SUCCESS;  // it was not started
  done->pending_->forget(*done);
  release(done);
  return MPI_SUCCESS;
}

void NonblockingCall::release(NonblockingCall* call) {
  if (call->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete call;
}

// (MPI forbids to cancel such requests.)
int NonblockingCall::cancel(void*, int) { return MPI_ERR_REQUEST; }

int NonblockingCall::report_failures(std::span<MPI_Status> statuses) {
  int result = MPI_SUCCESS;
  for (int tag = failed_tag; NonblockingCall* const failed = this_thread.failed_calls; ++tag) {
    const bool is_freed = failed->comm_ == real().comm_null;
    const int code = raise_error(is_freed ? real().comm_world : failed->comm_, failed->status_);
    this_thread.failed_calls = failed->links_.next_failed;
    release(failed);
    if (result == MPI_SUCCESS) result = code;
    for (MPI_Status& status : statuses) {
      if (status.MPI_TAG != tag) continue;
      status.MPI_TAG = MPI_ANY_TAG;
      status.MPI_ERROR = code;
    }
  }
  return result;
}

void NonblockingCall::take_back_failures() {
  while (NonblockingCall* const failed = this_thread.failed_calls) {
    this_thread.failed_calls = std::exchange(failed->links_.next_failed, nullptr);
    failed->is_told_.store(false);
    release(failed);
  }
}

namespace {

// The state of a communicator whose non-blocking calls Sluice may carry: it has a team, which no
// non-blocking call can make, because that blocks; or its calls fail on this rank. nullptr: MPI
// does the call. Equal on all ranks whose calls do not fail.
Communicator* find_carried(MPI_Comm handle) {
  Communicator* communicator = last_communicator(handle);
  if (!communicator) communicator = find_existing_communicator(handle);
  if (communicator) communicator->note_algorithm(nullptr);  // until Sluice has chosen one
  const bool is_carried =
      communicator && (communicator->has_nonblocking() || !communicator->broken().ok());
  return is_carried ? communicator : nullptr;
}

int report(MPI_Comm comm, const Status& status) {
  log(Level::error, "%s", status.message().c_str());
  return raise_error(comm, status);
}

}  // namespace

bool start_nonblocking(const Row& row, const Arguments& arguments, MPI_Request* request,
                       int* result) {
  if (is_passing() || !request) return false;
  Communicator* const communicator = find_carried(arguments.comm);
  if (!communicator) return false;
  Status status = communicator->broken();
  if (!communicator->team()) {
    *result = report(arguments.comm, status.with(row.name));
    return true;
  }
  Team& team = *communicator->team();
  Runtime& runtime = Runtime::get();
  try {
    const Inside inside;
    if (!status.ok()) status = runtime.pending().fail(team, status);
    auto call = std::make_unique<NonblockingCall>(row.name, arguments.comm, runtime.process());
    if (!call->describe(row, arguments, {communicator->rank(), communicator->size()})) return false;
    const Algorithm* const by = call->choose(team, runtime.pending().way(), true);
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
