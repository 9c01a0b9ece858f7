// SPDX-License-Identifier: BSD-3-Clause
//
// Streams of Sluice's own, kept for each context. They do not wait for the program's streams, nor
// these for them.
#pragma once

#include <mutex>

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/module.h"

// What SluiceCuda::open returns.
struct SluiceCudaStream {
  SluiceCudaStream* next = nullptr;
  sluice::cuda::CUcontext context = nullptr;
  unsigned long long id = 0;  // of the context; 0: the driver gives contexts no ids
  int retained = -1;          // see contexts.h
  sluice::cuda::CUstream stream = nullptr;
  sluice::cuda::CUevent marks[sluice_cuda_marks] = {};
  sluice::cuda::CUdeviceptr begin = 0, end = 0;  // an allocation that this call copies from or to
};

namespace sluice::cuda {

// Waits for an event of the current context; all that it asks of the driver meanwhile is whether
// that has come. False if what was before it has failed.
bool wait_for(CUevent mark, const char* what, char* why);

class StreamPool {
 public:
  SluiceCudaStream* open(const SluiceCudaPlace& place, char* why);
  // Whether all of its copies were done. The stream's copies must not be needed any more.
  bool close(SluiceCudaStream* stream, char* why);
  // Destroys the streams that are not open.
  void clear();

 private:
  SluiceCudaStream* take_idle(unsigned long long id);
  void drop_gone();

  std::mutex mutex_;
  // The streams of a context that the program destroys go with it; ids are not used again.
  SluiceCudaStream* idle_ = nullptr;
};

}  // namespace sluice::cuda
