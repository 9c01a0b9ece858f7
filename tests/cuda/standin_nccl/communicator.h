// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/cuda/standin_nccl/shared_file.h"
#include "tests/cuda/standin_nccl/standin_nccl.h"

namespace standin_nccl {

// An operation that the program has asked for. peer: of send and receive.
struct Task {
  Descriptor what;
  const void* from;
  void* to;
  int peer;
};

// Bytes that this rank reads from `from` and writes to `to`.
size_t bytes_in(const Task& task, int rank, int ranks);
size_t bytes_out(const Task& task, int rank, int ranks);

ncclResult_t misuse(ncclResult_t result, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(const ncclUniqueId& id, int rank, int ranks, bool is_blocking);
  ~Communicator();

  // The program's calls. `function` is the one that it has called.
  ncclResult_t begin();
  ncclResult_t check(const Task& task, CUstream stream, const char* function);
  ncclResult_t submit(std::vector<Task> tasks, CUstream stream, const char* function);
  ncclResult_t poll();
  ncclResult_t abort();
  ncclResult_t finalize();
  ncclResult_t destroy();
  bool is_own_process() const;

  // For its jobs.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int device() const { return device_; }
  SharedFile& file() { return file_; }
  // Messages taken from a rank so far, of those to this rank alone and of those to all.
  uint64_t& takes(int from, bool is_to_all) { return takes_[from][is_to_all ? 1 : 0]; }
  bool fails_job(int number) const;
  bool gets_stuck(int number) const;
  void fail(ncclResult_t error);
  // Until the condition holds; false once this rank has called abort.
  bool await(const std::function<bool()>& condition) const;
  void end_job(bool is_done);

 private:
  enum class State : uint8_t { starting, idle, enqueueing, finalizing, finalized, gone };

  void read_environment();
  void read_init(const char* text);
  void read_job(const char* text);
  ncclResult_t adopt_context();
  void initialize();
  ncclResult_t compare_ranks();
  ncclResult_t refuse_busy(const char* function);
  ncclResult_t check_buffer(const void* buffer, size_t bytes, const char* function) const;
  void launch();
  bool have_all(std::atomic<int> RankRow::*flag);
  bool has_everyone_left();
  ncclResult_t advance();
  ncclResult_t drain(ncclResult_t at_first);

  const int rank_, ranks_, process_;
  const bool is_blocking_;
  SharedFile file_;
  const ncclUniqueId id_;

  // Read from the environment.
  int version_ = 0, polls_ = 3, delay_ms_ = 0, error_job_ = 0, stuck_job_ = 0, deadly_job_ = 0;
  bool fails_finalize_ = false;
  enum class Fate : uint8_t { well, fails, hangs } fate_ = Fate::well;

  CUcontext context_ = nullptr;
  int device_ = 0;
  std::thread starter_;
  std::atomic<bool> has_started_{false}, is_aborted_{false};
  std::atomic<ncclResult_t> error_{sluice::cuda::ncclSuccess};
  std::atomic<int> open_jobs_{0};  // launched, and not ended

  std::mutex mutex_;  // of what follows
  State state_ = State::starting;
  int polls_left_ = 0, jobs_ = 0;
  std::vector<Task> pending_;
  CUstream stream_ = nullptr;

  uint64_t takes_[most_ranks][2] = {};  // the running job's
};

}  // namespace standin_nccl
