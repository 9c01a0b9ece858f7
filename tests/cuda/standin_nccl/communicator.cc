// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin_nccl/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tests/cuda/standin_nccl/arithmetic.h"
#include "tests/cuda/standin_nccl/job.h"

namespace standin_nccl {

ncclResult_t misuse(ncclResult_t result, const char* format, ...) {
  char text[256] = "nccl: ";
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + 6, sizeof text - 6, format, arguments);
  va_end(arguments);
  standin_misuse(text);
  return result;
}

Communicator::Communicator(const ncclUniqueId& id, int rank, int ranks, bool is_blocking)
    : rank_(rank),
      ranks_(ranks),
      process_(static_cast<int>(getpid())),
      is_blocking_(is_blocking),
      file_(id),
      id_(id) {}

Communicator::~Communicator() {
  if (starter_.joinable()) starter_.join();
}

bool Communicator::is_own_process() const { return process_ == static_cast<int>(getpid()); }

ncclResult_t Communicator::begin() {
  if (!file_.is_open()) return ncclSystemError;
  read_environment();
  if (const ncclResult_t wrong = adopt_context(); wrong) return wrong;
  standin_add("nccl_communicators", 1);
  file_.row(rank_).has_called = 1;
  polls_left_ = polls_;
  starter_ = std::thread([this] { initialize(); });
  const ncclResult_t result = drain(ncclInProgress);
  if (result && result != ncclInProgress) file_.row(rank_).has_finalized = 1;
  return result;
}

ncclResult_t Communicator::adopt_context() {
  if (cuCtxGetCurrent(&context_) != CUDA_SUCCESS || !context_ ||
      cuCtxGetDevice(&device_) != CUDA_SUCCESS) {
    return misuse(ncclUnhandledCudaError, "init of rank %d without a current context", rank_);
  }
  return ncclSuccess;
}

ncclResult_t Communicator::refuse_busy(const char* function) {
  if (error_) return error_;
  if (state_ == State::idle) return ncclSuccess;
  const bool is_late = state_ == State::finalized || state_ == State::gone;
  return misuse(ncclInvalidUsage, "%s on rank %d %s", function, rank_,
                is_late ? "after finalize" : "while the state is ncclInProgress");
}

ncclResult_t Communicator::check_buffer(const void* buffer, size_t bytes,
                                        const char* function) const {
  if (standin_may_use(device_, reinterpret_cast<CUdeviceptr>(buffer), bytes)) return ncclSuccess;
  return misuse(ncclInvalidArgument, "%s: device %d may not use %zu bytes at %p", function, device_,
                bytes, buffer);
}

namespace {

// In place is one address for all reductions to whole buffers, and the rank's own block in the
// larger buffer for the others. Anything else that overlaps is wrong.
bool is_overlap_right(const Task& task, int rank, int ranks) {
  const size_t in = bytes_in(task, rank, ranks), out = bytes_out(task, rank, ranks);
  const auto from = reinterpret_cast<uintptr_t>(task.from);
  const auto to = reinterpret_cast<uintptr_t>(task.to);
  if (in == 0 || out == 0 || from + in <= to || to + out <= from) return true;
  const size_t block = std::min(in, out) * static_cast<size_t>(rank);
  if (in < out) return from == to + block;
  return in > out ? to == from + block : from == to;
}

// A group's operations run at the same time: none may write what another reads or writes.
bool are_apart(const std::vector<Task>& tasks, int rank, int ranks) {
  const auto overlap = [](const void* one, size_t bytes, const void* other, size_t others) {
    const auto a = reinterpret_cast<uintptr_t>(one), b = reinterpret_cast<uintptr_t>(other);
    return bytes > 0 && others > 0 && a < b + others && b < a + bytes;
  };
  for (const Task& task : tasks) {
    const size_t bytes = bytes_out(task, rank, ranks);
    for (const Task& other : tasks) {
      if (&other == &task) continue;
      if (overlap(task.to, bytes, other.from, bytes_in(other, rank, ranks))) return false;
      if (overlap(task.to, bytes, other.to, bytes_out(other, rank, ranks))) return false;
    }
  }
  return true;
}

}  // namespace

ncclResult_t Communicator::check(const Task& task, CUstream stream, const char* function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const ncclResult_t wrong = refuse_busy(function); wrong) return wrong;
  CUcontext current = nullptr;
  (void)cuCtxGetCurrent(&current);
  if (current != context_) {
    return misuse(ncclInvalidUsage, "%s on rank %d in another context than init's", function,
                  rank_);
  }
  if (standin_stream_device(stream) != device_) {
    return misuse(ncclInvalidArgument, "%s on rank %d: no stream of device %d", function, rank_,
                  device_);
  }
  const auto ranks = static_cast<uint32_t>(ranks_);
  const bool is_known = size_of(task.what.type) != 0 && is_operation(task.what.operation) &&
                        task.what.root < ranks && static_cast<uint32_t>(task.peer) < ranks;
  if (!is_known) {
    return misuse(ncclInvalidArgument, "%s on rank %d: no such type, operation or rank", function,
                  rank_);
  }
  const size_t in = bytes_in(task, rank_, ranks_), out = bytes_out(task, rank_, ranks_);
  if (const ncclResult_t wrong = check_buffer(task.from, in, function); wrong) return wrong;
  if (const ncclResult_t wrong = check_buffer(task.to, out, function); wrong) return wrong;
  if (is_overlap_right(task, rank_, ranks_)) return ncclSuccess;
  return misuse(ncclInvalidArgument, "%s on rank %d: the buffers overlap", function, rank_);
}

// (A collective of no elements is nothing.)
ncclResult_t Communicator::submit(std::vector<Task> tasks, CUstream stream, const char* function) {
  std::erase_if(
      tasks, [](const Task& task) { return task.what.count == 0 && task.what.kind < Kind::send; });
  ncclResult_t at_first = ncclSuccess;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const ncclResult_t wrong = refuse_busy(function); wrong) return wrong;
    if (tasks.empty()) return ncclSuccess;
    if (!are_apart(tasks, rank_, ranks_)) {
      return misuse(ncclInvalidArgument, "%s on rank %d: buffers of the group overlap", function,
                    rank_);
    }
    pending_ = std::move(tasks);
    stream_ = stream;
    polls_left_ = polls_;
    state_ = State::enqueueing;
    if (jobs_ + 1 == deadly_job_) std::raise(SIGKILL);
    if (jobs_++ % 2 == 0) at_first = ncclInProgress;
  }
  return drain(at_first);
}

void Communicator::launch() {
  CUcontext popped = nullptr;
  (void)cuCtxPushCurrent_v2(context_);
  ++open_jobs_;
  const bool is_launched = Job::launch(shared_from_this(), std::move(pending_), jobs_, stream_);
  (void)cuCtxPopCurrent_v2(&popped);
  pending_.clear();
  if (is_launched) return;
  --open_jobs_;
  fail(misuse(ncclUnhandledCudaError, "the stream of a job of rank %d is gone", rank_));
}

void Communicator::end_job(bool is_done) {
  standin_add("nccl_running", -1);
  if (is_done) standin_add("nccl_jobs", 1);
  --open_jobs_;
}

ncclResult_t Communicator::poll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return error_ ? error_.load() : advance();
}

// What can be done now, where the state is not idle.
ncclResult_t Communicator::advance() {
  switch (state_) {
    case State::starting:
      if (!has_started_ || polls_left_-- > 0) return ncclInProgress;
      state_ = State::idle;
      break;
    case State::enqueueing:
      if (polls_left_-- > 0) return ncclInProgress;
      launch();
      state_ = State::idle;
      break;
    case State::finalizing:
      if (fails_finalize_) return error_ = sluice::cuda::ncclSystemError;
      if (open_jobs_ > 0) return ncclInProgress;
      file_.row(rank_).has_finalized = 1;
      if (!have_all(&RankRow::has_finalized) || polls_left_-- > 0) return ncclInProgress;
      state_ = State::finalized;
      break;
    default:
      break;
  }
  return error_;
}

// A blocking communicator's calls return when all is done.
ncclResult_t Communicator::drain(ncclResult_t at_first) {
  if (!is_blocking_) return at_first;
  ncclResult_t result = ncclInProgress;
  (void)await([&] { return (result = poll()) != ncclInProgress; });
  return result;
}

ncclResult_t Communicator::finalize() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const ncclResult_t wrong = refuse_busy("ncclCommFinalize"); wrong) return wrong;
    state_ = State::finalizing;
    polls_left_ = polls_;
  }
  return drain(ncclInProgress);
}

ncclResult_t Communicator::destroy() {
  bool is_right = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_right = state_ == State::finalized;
    state_ = State::gone;
  }
  file_.row(rank_).has_finalized = 1;
  standin_add("nccl_communicators", -1);
  if (!is_right) is_aborted_ = true;
  if (starter_.joinable()) starter_.join();
  if (is_right) return ncclSuccess;
  return misuse(ncclInvalidUsage, "rank %d is destroyed before finalize has ended", rank_);
}

ncclResult_t Communicator::abort() {
  is_aborted_ = true;
  file_.row(rank_).has_aborted = 1;
  file_.remove_name();
  if (starter_.joinable()) starter_.join();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ == State::finalized) file_.row(rank_).has_finalized = 1;
    state_ = State::gone;
    pending_.clear();
  }
  standin_add("nccl_aborts", 1);
  while (!has_everyone_left()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  standin_add("nccl_communicators", -1);
  return ncclSuccess;
}

bool Communicator::has_everyone_left() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const RankRow& row = file_.row(rank);
    if (row.has_called && !row.has_aborted && !row.has_finalized) return false;
  }
  return true;
}

bool Communicator::have_all(std::atomic<int> RankRow::*flag) {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!(file_.row(rank).*flag)) return false;
  }
  return true;
}

bool Communicator::await(const std::function<bool()>& condition) const {
  for (int turn = 0; !condition(); ++turn) {
    if (is_aborted_) return false;
    if (turn < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return true;
}

bool Communicator::fails_job(int number) const { return number == error_job_; }

bool Communicator::gets_stuck(int number) const { return number == stuck_job_; }

void Communicator::fail(ncclResult_t error) { error_ = error; }

}  // namespace standin_nccl
