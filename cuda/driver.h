// SPDX-License-Identifier: BSD-3-Clause
//
// The CUDA driver of this process, as a table of its functions. Nothing in this folder throws.
#pragma once

#include <cstdint>

#include "cuda/driver_api.h"

namespace sluice::cuda {

struct Driver {
#define SLUICE_MEMBER(name, ...)   \
  using name##_type = __VA_ARGS__; \
  name##_type* name = nullptr;
  SLUICE_CUDA_FUNCTIONS(SLUICE_MEMBER)
  SLUICE_CUDA_LATER_FUNCTIONS(SLUICE_MEMBER)
  SLUICE_CUDA_EARLIER_FUNCTIONS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
};

// Finds the driver's functions. handle: of dlopen. False, with the reason, if one is missing.
bool bind_driver(void* handle, char* why);

// The functions. Valid once bind_driver has succeeded.
const Driver& driver();

// Whether the result is CUDA_SUCCESS. If not, `why` says: "cuStreamCreate: CUDA_ERROR_UNKNOWN 999
// (unknown error)". why: sluice_cuda_why bytes (module.h).
bool is_success(const char* function, CUresult result, char* why);

inline CUdeviceptr address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

// While it exists, this thread's calls of the driver count as harmless for graphs that the program
// is capturing from streams, on any thread. (Sluice's streams are never captured.) Otherwise a call
// that is "potentially unsafe" fails and invalidates the capture.
class Relaxed {
 public:
  Relaxed() { relaxed_ = exchange(); }
  ~Relaxed() {
    if (relaxed_) exchange();
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  bool exchange() {
    const auto function = driver().cuThreadExchangeStreamCaptureMode;
    return function && function(&mode_) == CUDA_SUCCESS;
  }

  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool relaxed_ = false;
};

// While it exists, a context is the calling thread's current one, and its calls are relaxed.
class Current {
 public:
  Current(CUcontext context, char* why)
      : pushed_(is_success("cuCtxPushCurrent", driver().cuCtxPushCurrent_v2(context), why)) {}
  ~Current() {
    CUcontext popped = nullptr;
    if (pushed_) driver().cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  explicit operator bool() const { return pushed_; }

 private:
  const Relaxed relaxed_;
  const bool pushed_;
};

}  // namespace sluice::cuda
