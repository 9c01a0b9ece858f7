// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/persistent_requests.h"

#include <memory>

#include "src/base/log.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/errors.h"
#include "src/mpi/persistent_call.h"
#include "src/mpi/runtime.h"

namespace sluice {

constinit std::atomic<uint32_t> persistent_requests{0};
constinit std::atomic<uint32_t> failed_starts{0};

namespace {

// The highest tag that every MPI has.
constexpr int most_tag = 32767;

}  // namespace

PersistentRequests& PersistentRequests::get() {
  static PersistentRequests* const all = new PersistentRequests;
  return *all;
}

bool PersistentRequests::take_tag(PersistentCall& call) {
  if (!free_tags_.empty()) {
    call.shared_.tag = free_tags_.back();
    free_tags_.pop_back();
    return true;
  }
  if (next_tag_ > most_tag) return false;
  free_tags_.reserve(static_cast<size_t>(next_tag_) + 1);
  call.shared_.tag = next_tag_++;
  return true;
}

bool PersistentRequests::open(PersistentCall& call) {
  const auto comm = probing_communicator();
  const std::lock_guard lock(mutex_);
  if (!comm || !take_tag(call)) return false;
  MPI_Request made{};
  if (real().Recv_init(nullptr, 0, MPI_BYTE, 0, call.shared_.tag, *comm, &made) != MPI_SUCCESS) {
    free_tags_.push_back(call.shared_.tag);
    return false;
  }
  try {
    calls_.emplace(made, &call);
  } catch (...) {
    free_tags_.push_back(call.shared_.tag);
    real().Request_free(&made);
    throw;
  }
  call.request_ = made;
  persistent_requests.fetch_add(1, std::memory_order_relaxed);
  return true;
}

PersistentCall* PersistentRequests::begin(MPI_Request request, bool* was_active) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(request);
  if (found == calls_.end()) return nullptr;
  *was_active = found->second->shared_.is_active;
  found->second->shared_.is_active = true;
  return found->second;
}

void PersistentRequests::take_back(PersistentCall& call) {
  const std::lock_guard lock(mutex_);
  call.shared_.is_active = false;
}

// Of a call that nobody starts any more.
void PersistentRequests::forget(PersistentCall& call) {
  if (call.shared_.has_failed) failed_starts.fetch_sub(1, std::memory_order_relaxed);
  free_tags_.push_back(call.shared_.tag);
}

// (A send that waits for its receive would wait for the thread that starts it.)
void PersistentRequests::complete(PersistentCall& call) {
  std::unique_ptr<PersistentCall> freed;
  const MPI_Comm comm = *probing_communicator();
  const int tag = call.shared_.tag;
  {
    const std::lock_guard lock(mutex_);
    call.shared_.is_active = false;
    if (!call.status_.ok() && !call.shared_.has_failed) {
      call.shared_.has_failed = true;
      failed_starts.fetch_add(1, std::memory_order_relaxed);
    }
    if (call.shared_.is_freed) {
      freed.reset(&call);
      forget(call);
    }
  }
  MPI_Request sent;
  real().Isend(nullptr, 0, MPI_BYTE, 0, tag, comm, &sent);
  real().Request_free(&sent);
}

bool PersistentRequests::close(MPI_Request request) {
  std::unique_ptr<PersistentCall> freed;
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(request);
  if (found == calls_.end()) return false;
  PersistentCall& call = *found->second;
  calls_.erase(found);
  persistent_requests.fetch_sub(1, std::memory_order_relaxed);
  if (call.shared_.is_active) {
    call.shared_.is_freed = true;
    return true;
  }
  freed.reset(&call);
  forget(call);
  return true;
}

Status PersistentRequests::take_failure(MPI_Request request, MPI_Comm* comm) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(request);
  if (found == calls_.end() || !found->second->shared_.has_failed) return {};
  PersistentCall& call = *found->second;
  call.shared_.has_failed = false;
  failed_starts.fetch_sub(1, std::memory_order_relaxed);
  *comm = call.comm_;
  return call.status_;
}

void PersistentRequests::end() {
  const std::lock_guard lock(mutex_);
  for (const auto& [request, call] : calls_) call->leave_team();
}

namespace {

// Sluice's part of a start. nullptr: the request is MPI's own; else *result is the error, if there
// is one.
PersistentCall* begin_start(MPI_Request request, int* result) {
  bool was_active = false;
  PersistentRequests& all = PersistentRequests::get();
  PersistentCall* const call = all.begin(request, &was_active);
  if (!call) return nullptr;
  Status status = was_active
                      ? Status(Code::invalid, "its request is started already").with(call->name())
                      : call->start();
  if (status.ok()) return call;
  if (!was_active) all.take_back(*call);
  log(Level::error, "%s", status.message().c_str());
  *result = call->raise(status);
  return call;
}

}  // namespace

int start_request(MPI_Request* request) {
  int result = MPI_SUCCESS;
  if (request) begin_start(*request, &result);
  return result == MPI_SUCCESS ? real().Start(request) : result;
}

// (If one can't be started, those behind it are not.)
int start_requests(int count, MPI_Request* requests) {
  int result = MPI_SUCCESS;
  for (int i = 0; requests && i < count; ++i) {
    begin_start(requests[i], &result);
    if (result == MPI_SUCCESS) continue;
    if (i > 0) real().Startall(i, requests);
    return result;
  }
  return real().Startall(count, requests);
}

int free_request(MPI_Request* request) {
  if (request) PersistentRequests::get().close(*request);
  return real().Request_free(request);
}

int report_failed_start(MPI_Request request) {
  MPI_Comm comm;
  const Status status = PersistentRequests::get().take_failure(request, &comm);
  if (status.ok()) return MPI_SUCCESS;
  return raise_error(comm == real().comm_null ? real().comm_world : comm, status);
}

}  // namespace sluice
