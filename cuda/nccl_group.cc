// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/nccl_group.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "cuda/contexts.h"
#include "cuda/nccl_library.h"
#include "cuda/streams.h"

using namespace sluice::cuda;

namespace {

constexpr size_t kept_scratch = size_t{64} << 20, least_scratch = size_t{1} << 20;

// Groups that were left to themselves, for tools that look for leaks.
constinit std::atomic<SluiceNcclGroup*> abandoned{nullptr};

SluiceNcclState deny(const char* text, SluiceNcclState state, char* why) {
  std::snprintf(why, sluice_cuda_why, "%s", text);
  return state;
}

}  // namespace

SluiceNcclGroup::SluiceNcclGroup(int rank, int ranks)
    : rank_(rank), ranks_(ranks), process_(getpid()) {}

bool SluiceNcclGroup::is_own_process() const { return process_ == getpid(); }

bool SluiceNcclGroup::begin(int device, const char* id, char* why) {
  device_ = device;
  context_ = retain_primary(device, why);
  if (!context_) return false;
  const bool is_begun = [&] {
    const Current current(context_, why);
    if (!current) return false;
    canary_ = make_canary();
    if (canary_.id == 0) std::snprintf(why, sluice_cuda_why, "no memory on device %d", device);
    if (canary_.id != 0) stream_ = make_stream(why);
    return stream_ &&
           is_success("cuEventCreate", driver().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING),
                      why) &&
           is_accepted("ncclCommInitRankConfig", initialize(id), why);
  }();
  if (!is_begun) release();
  return is_begun;
}

ncclResult_t SluiceNcclGroup::initialize(const char* id) {
  ncclUniqueId unique;
  static_assert(sizeof unique == sluice_nccl_id);
  std::memcpy(&unique, id, sizeof unique);
  ncclConfig_t config;
  config.blocking = 0;
  return nccl().ncclCommInitRankConfig(&communicator_, ranks_, unique, rank_, &config);
}

SluiceNcclState SluiceNcclGroup::advance(char* why) {
  if (!is_own_process()) {
    return deny("the group is of the process that forked this one", sluice_nccl_failed, why);
  }
  Phase before;
  do {
    before = phase_;
    step();
  } while (phase_ != before);
  switch (phase_) {
    case Phase::starting:
      return sluice_nccl_starting;
    case Phase::ready:
      return sluice_nccl_ready;
    case Phase::enqueueing:
    case Phase::running:
    case Phase::copying_back:
      return sluice_nccl_running;
    case Phase::failed:
      return deny(why_, sluice_nccl_failed, why);
    case Phase::ended:
    case Phase::gone:
      return sluice_nccl_ended;
    default:
      return sluice_nccl_ending;
  }
}

void SluiceNcclGroup::step() {
  switch (phase_) {
    case Phase::ready:
    case Phase::failed:
    case Phase::ended:
    case Phase::gone:
      break;
    case Phase::aborting:
      has_thread_ = has_thread_ || start_abort();
      if (has_aborted_) phase_ = Phase::draining;
      break;
    case Phase::draining:
      if (is_stream_idle()) phase_ = Phase::ended;
      break;
    default: {
      const Current current(context_, why_);
      current ? step_in_context() : fail();
    }
  }
}

void SluiceNcclGroup::step_in_context() {
  switch (phase_) {
    case Phase::starting:
      if (is_settled()) phase_ = Phase::ready;
      break;
    case Phase::enqueueing:
      if (is_settled()) end_enqueueing();
      break;
    case Phase::running:
      if (is_settled() && is_reached()) end_running();
      break;
    case Phase::copying_back:
      if (is_reached()) end_job();
      break;
    default:
      if (is_settled()) end_finalizing();
  }
}

// Whether NCCL has done what it was asked for. (A job's kernel may run on.)
bool SluiceNcclGroup::is_settled() {
  ncclResult_t state = ncclInProgress;
  const ncclResult_t result = nccl().ncclCommGetAsyncError(communicator_, &state);
  const bool is_well = is_accepted("ncclCommGetAsyncError", result, why_) &&
                       is_accepted("ncclCommGetAsyncError says", state, why_);
  if (!is_well) fail();
  return is_well && state == ncclSuccess;
}

bool SluiceNcclGroup::is_reached() {
  const CUresult result = driver().cuEventQuery(event_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  const bool is_well = is_success("a job of NCCL", result, why_);
  if (!is_well) fail();
  return is_well;
}

// Nothing runs any more in a context that is broken.
bool SluiceNcclGroup::is_stream_idle() {
  const Current current(context_, why_);
  return !current || driver().cuStreamQuery(stream_) != CUDA_ERROR_NOT_READY;
}

// why_ says why. A group that is to end anyway is aborted.
void SluiceNcclGroup::fail() {
  const bool is_ending = phase_ == Phase::finalizing;
  phase_ = Phase::failed;
  if (is_ending) abort();
}

void SluiceNcclGroup::fail_for(const char* why) {
  std::snprintf(why_, sizeof why_, "%s", why);
  fail();
}

void SluiceNcclGroup::record() {
  const CUresult result = driver().cuEventRecord(event_, stream_);
  if (!is_success("cuEventRecord", result, why_)) fail();
}

// Copies on the device follow at once. Those to host memory, which may be pageable, would wait here
// for the other ranks.
void SluiceNcclGroup::end_enqueueing() {
  phase_ = Phase::running;
  if (!job_.copies_to_host() && !job_.copy_out(stream_, why_)) return fail();
  record();
}

void SluiceNcclGroup::end_running() {
  if (!job_.copies_to_host()) return end_job();
  phase_ = Phase::copying_back;
  if (!job_.copy_out(stream_, why_)) return fail();
  record();
}

void SluiceNcclGroup::end_job() {
  phase_ = Phase::ready;
  job_ = {};
  if (scratch_bytes_ > kept_scratch) (void)set_scratch_size(0, why_);
}

void SluiceNcclGroup::end_finalizing() {
  (void)nccl().ncclCommDestroy(communicator_);
  phase_ = Phase::draining;
}

// Whether it may take work now.
bool SluiceNcclGroup::is_usable(char* why) const {
  const char* text = nullptr;
  if (!is_own_process() || (phase_ != Phase::ready && phase_ != Phase::starting)) {
    text = "the group is not ready";
  } else if (is_gone(canary_, context_)) {
    text = "the program has reset the device";
  }
  if (text) std::snprintf(why, sluice_cuda_why, "%s", text);
  return !text;
}

bool SluiceNcclGroup::reserve(const SluiceNcclJob& job, char* why) {
  if (!is_usable(why)) {
    if (phase_ == Phase::starting || phase_ == Phase::ready) fail_for(why);
    return false;
  }
  const size_t bytes = NcclJob(job, rank_, ranks_).scratch_bytes();
  if (bytes <= scratch_bytes_) return true;
  const Current current(context_, why);
  const size_t rounded = std::max(std::bit_ceil(bytes), least_scratch);
  return current && set_scratch_size(rounded <= kept_scratch ? rounded : bytes, why);
}

// The context must be current.
bool SluiceNcclGroup::set_scratch_size(size_t bytes, char* why) {
  if (scratch_) driver().cuMemFree_v2(scratch_);
  scratch_ = 0;
  scratch_bytes_ = 0;
  if (bytes == 0) return true;
  if (!is_success("cuMemAlloc", driver().cuMemAlloc_v2(&scratch_, bytes), why)) {
    scratch_ = 0;
    return false;
  }
  scratch_bytes_ = bytes;
  return true;
}

bool SluiceNcclGroup::start(const SluiceNcclJob& job, char* why) {
  if (!is_own_process() || phase_ != Phase::ready) {
    std::snprintf(why, sluice_cuda_why, "the group is not ready");
    return false;
  }
  const bool is_begun = is_usable(why_) && begin_job(job);
  phase_ = is_begun ? Phase::enqueueing : Phase::failed;
  if (!is_begun) std::snprintf(why, sluice_cuda_why, "%s", why_);
  return is_begun;
}

bool SluiceNcclGroup::begin_job(const SluiceNcclJob& job) {
  const Current current(context_, why_);
  if (!current) return false;
  job_ = NcclJob(job, rank_, ranks_);
  if (job_.scratch_bytes() > scratch_bytes_) {
    std::snprintf(why_, sluice_cuda_why, "no scratch is reserved for this job");
    return false;
  }
  job_.set_scratch(scratch_);
  return job_.copy_in(stream_, why_) && job_.enqueue(communicator_, stream_, why_);
}

void SluiceNcclGroup::abort() {
  const bool is_over = phase_ == Phase::aborting || phase_ == Phase::draining ||
                       phase_ == Phase::ended || phase_ == Phase::gone;
  if (is_over || !is_own_process()) return;
  phase_ = is_gone(canary_, context_) ? Phase::gone : Phase::aborting;
  has_thread_ = phase_ == Phase::aborting && start_abort();
}

// Signals of the program are not for this thread.
bool SluiceNcclGroup::start_abort() {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigfillset(&all);
  const bool is_masked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  const bool is_started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                          pthread_create(&thread, &attributes, run_abort, this) == 0;
  if (is_masked) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return is_started;
}

void* SluiceNcclGroup::run_abort(void* argument) {
  auto* const group = static_cast<SluiceNcclGroup*>(argument);
  {
    char why[sluice_cuda_why];
    const Current current(group->context_, why);
    (void)nccl().ncclCommAbort(group->communicator_);
  }
  group->has_aborted_ = true;
  return nullptr;
}

void SluiceNcclGroup::end() {
  if (!is_own_process() || phase_ != Phase::ready || is_gone(canary_, context_)) return abort();
  const Current current(context_, why_);
  phase_ = Phase::finalizing;
  const bool is_begun =
      current && is_accepted("ncclCommFinalize", nccl().ncclCommFinalize(communicator_), why_);
  if (!is_begun) fail();
}

void SluiceNcclGroup::forget() {
  const bool is_over = phase_ == Phase::ended || phase_ == Phase::gone;
  if (is_own_process() && !is_over) {
    next_ = abandoned.load();
    while (!abandoned.compare_exchange_weak(next_, this)) {
    }
    return;
  }
  if (is_own_process()) release();
  delete this;
}

void SluiceNcclGroup::release() {
  if (phase_ != Phase::gone) {
    char why[sluice_cuda_why];
    const Current current(context_, why);
    (void)set_scratch_size(0, why);
    if (canary_.address) driver().cuMemFree_v2(canary_.address);
    if (event_) driver().cuEventDestroy_v2(event_);
    if (stream_) driver().cuStreamDestroy_v2(stream_);
  }
  release_primary(device_);
}
