// SPDX-License-Identifier: BSD-3-Clause
//
// Streams of Sluice's own, kept for each context. Unless the program wants blocking ones, they do
// not wait for its streams, nor these for them.
#pragma once

#include <mutex>

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/module.h"

// What SluiceCuda::open returns.
struct SluiceCudaStream {
  SluiceCudaStream* next = nullptr;
  sluice::cuda::CUcontext context = nullptr;
  bool is_in_context = false;  // the memory of this call; else it is of a pool, or mapped
  // Looked at before an idle stream is used. If it is not alive, the stream is forgotten.
  sluice::cuda::Canary canary;
  sluice::cuda::CUstream stream = nullptr;
  sluice::cuda::CUevent marks[sluice_cuda_marks] = {};
  sluice::cuda::CUdeviceptr begin = 0, end = 0;  // an allocation that this call copies from or to
  void* scratch = nullptr;  // device memory that this call packs in, until close
  size_t scratch_bytes = 0;
};

namespace sluice::cuda {

void set_streams(const SluiceCudaSettings& settings);
// A stream in the current context, as the settings say. Null, with the reason, if the driver
// refuses.
CUstream make_stream(char* why);

class StreamPool {
 public:
  SluiceCudaStream* open(const SluiceCudaPlace& place, char* why);
  // done: see SluiceCuda::close.
  void close(SluiceCudaStream* stream, bool done);
  // Destroys the streams that are not open.
  void clear();

 private:
  SluiceCudaStream* take_idle(CUcontext context);
  void drop_gone();

  std::mutex mutex_;
  // The streams of a context that the program destroys go with it: they are forgotten, and nothing
  // is done with their handles.
  SluiceCudaStream* idle_ = nullptr;
};

}  // namespace sluice::cuda
