// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/streams.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "cuda/scratch.h"

namespace sluice::cuda {
namespace {

constinit std::atomic<bool> are_blocking{false}, are_contexts_synchronous{false};

void destroy(SluiceCudaStream* stream) {
  for (const CUevent mark : stream->marks) {
    if (mark) driver().cuEventDestroy_v2(mark);
  }
  if (stream->stream) driver().cuStreamDestroy_v2(stream->stream);
  if (stream->canary.address) driver().cuMemFree_v2(stream->canary.address);
  delete stream;
}

// From now on synchronous copies of the program in the current context are done when they return,
// also those to memory that can't have CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
void make_copies_synchronous() {
  unsigned flags = 0;
  const auto set = driver().cuCtxSetFlags;
  if (!set || driver().cuCtxGetFlags(&flags) != CUDA_SUCCESS) return;
  if (!(flags & CU_CTX_SYNC_MEMOPS)) (void)set(flags | CU_CTX_SYNC_MEMOPS);
}

// The context must be current.
SluiceCudaStream* make(CUcontext context, char* why) {
  auto* const made = new (std::nothrow) SluiceCudaStream;
  if (!made) {
    std::snprintf(why, sluice_cuda_why, "no memory for a stream");
    return nullptr;
  }
  const Driver& cuda = driver();
  made->context = context;
  made->stream = make_stream(why);
  bool ok = made->stream != nullptr;
  for (CUevent& mark : made->marks) {
    ok = ok && is_success("cuEventCreate", cuda.cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING), why);
  }
  if (!ok) {
    destroy(made);
    return nullptr;
  }
  made->canary = make_canary();
  return made;
}

}  // namespace

void set_streams(const SluiceCudaSettings& settings) {
  are_blocking = settings.blocking_streams != 0;
  are_contexts_synchronous = settings.sync_contexts != 0;
}

CUstream make_stream(char* why) {
  CUstream stream = nullptr;
  const CUstream_flags flags = are_blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  const CUresult result = driver().cuStreamCreate(&stream, flags);
  if (!is_success("cuStreamCreate", result, why)) return nullptr;
  if (are_contexts_synchronous) make_copies_synchronous();
  return stream;
}

SluiceCudaStream* StreamPool::open(const SluiceCudaPlace& place, char* why) {
  const CUcontext context = find_context(place, why);
  if (!context) return nullptr;
  SluiceCudaStream* stream = take_idle(context);
  if (!stream) {
    drop_gone();
    const Current current(context, why);
    stream = current ? make(context, why) : nullptr;
  }
  if (!stream) return nullptr;
  stream->begin = stream->end = 0;
  stream->is_in_context = place.context != nullptr;
  return stream;
}

SluiceCudaStream* StreamPool::take_idle(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (SluiceCudaStream** link = &idle_; *link; link = &(*link)->next) {
    const bool fits = (*link)->context == context && is_alive((*link)->canary, (*link)->context);
    if (fits) return std::exchange(*link, (*link)->next);
  }
  return nullptr;
}

void StreamPool::drop_gone() {
  const std::lock_guard lock(mutex_);
  for (SluiceCudaStream** link = &idle_; *link;) {
    if (is_alive((*link)->canary, (*link)->context)) {
      link = &(*link)->next;
    } else {
      delete std::exchange(*link, (*link)->next);
    }
  }
}

void StreamPool::clear() {
  drop_gone();
  const std::lock_guard lock(mutex_);
  while (SluiceCudaStream* const stream = idle_) {
    char why[sluice_cuda_why];
    idle_ = stream->next;
    const Current current(stream->context, why);
    destroy(stream);
  }
}

void StreamPool::close(SluiceCudaStream* stream, bool done) {
  if (stream->scratch) {
    done ? scratch().release(stream->scratch) : scratch().abandon(stream->scratch);
  }
  stream->scratch = nullptr;
  stream->scratch_bytes = 0;
  if (done && stream->canary.id != 0) {
    const std::lock_guard lock(mutex_);
    stream->next = idle_;
    idle_ = stream;
    return;
  }
  char why[sluice_cuda_why];
  const Current current(stream->context, why);
  stream->canary = {};  // it stays: to free memory waits for the device, which may be stuck
  destroy(stream);
}

}  // namespace sluice::cuda
