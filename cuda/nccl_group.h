// SPDX-License-Identifier: BSD-3-Clause
//
// A communicator of NCCL with a stream of its own, and the job that it runs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/nccl_api.h"
#include "cuda/nccl_job.h"
#include "cuda/nccl_module.h"

// What SluiceNccl::create returns. The members do what the table's functions of their names say.
struct SluiceNcclGroup {
 public:
  SluiceNcclGroup(int rank, int ranks);
  SluiceNcclGroup(const SluiceNcclGroup&) = delete;
  SluiceNcclGroup& operator=(const SluiceNcclGroup&) = delete;

  // Retains the device's primary context and begins NCCL's init in it. If it fails, nothing is
  // left.
  bool begin(int device, const char* id, char* why);
  SluiceNcclState advance(char* why);
  bool reserve(const SluiceNcclJob& job, char* why);
  bool start(const SluiceNcclJob& job, char* why);
  void abort();
  void end();
  void forget();

 private:
  enum class Phase : uint8_t {
    starting,
    ready,
    enqueueing,    // NCCL puts the job into the stream
    running,       // until the stream has reached the event behind it
    copying_back,  // the same, of the copies to host memory
    failed,
    aborting,    // ncclCommAbort has not returned
    finalizing,  // ncclCommFinalize has not ended
    draining,    // NCCL has given the communicator up; the stream is not idle
    ended,
    gone  // the program has reset the device: nothing is done with what was there
  };

  bool is_own_process() const;
  bool is_usable(char* why) const;
  bool begin_job(const SluiceNcclJob& job);
  sluice::cuda::ncclResult_t initialize(const char* id);
  void step();
  void step_in_context();
  bool is_settled();
  bool is_reached();
  bool is_stream_idle();
  void fail();
  void fail_for(const char* why);
  void record();
  void end_enqueueing();
  void end_running();
  void end_job();
  void end_finalizing();
  bool start_abort();
  static void* run_abort(void* group);
  bool set_scratch_size(size_t bytes, char* why);
  void release();

  const int rank_, ranks_;
  const pid_t process_;  // others are forked ones
  int device_ = -1;
  sluice::cuda::CUcontext context_ = nullptr;
  sluice::cuda::Canary canary_;
  sluice::cuda::CUstream stream_ = nullptr;
  sluice::cuda::CUevent event_ = nullptr;
  sluice::cuda::ncclComm_t communicator_ = nullptr;
  sluice::cuda::CUdeviceptr scratch_ = 0;
  size_t scratch_bytes_ = 0;
  sluice::cuda::NcclJob job_;  // from start to its end

  Phase phase_ = Phase::starting;
  char why_[sluice_cuda_why] = "";        // of a failure
  bool has_thread_ = false;               // in which ncclCommAbort runs
  std::atomic<bool> has_aborted_{false};  // set by that thread, which touches nothing of this after
  SluiceNcclGroup* next_ = nullptr;       // of those that were left to themselves
};
