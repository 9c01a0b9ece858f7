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
  // A byte of device memory, which goes with the context. The driver may be asked about any address
  // at any time, but not about a context that the program has destroyed. So before an idle stream
  // is used, the driver is asked whether this address still has its allocation's id; if not, the
  // stream is forgotten. 0: there was no memory.
  sluice::cuda::CUdeviceptr canary = 0;
  unsigned long long canary_id = 0;
  sluice::cuda::CUstream stream = nullptr;
  sluice::cuda::CUevent marks[sluice_cuda_marks] = {};
  sluice::cuda::CUdeviceptr begin = 0, end = 0;  // an allocation that this call copies from or to
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
