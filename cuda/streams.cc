// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/streams.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

namespace sluice::cuda {
namespace {

constinit std::atomic<bool> are_blocking{false}, are_contexts_synchronous{false};

// Ids of allocations are never used again, so a context with the handle of an earlier one, which
// may have memory at the same address, is told apart.
struct Canary {
  unsigned long long id = 0;
  CUcontext context = nullptr;
};
Canary look_at(CUdeviceptr address) {
  Canary found;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* values[] = {&found.id, &found.context};
  const bool told = driver().cuPointerGetAttributes(2, which, values, address) == CUDA_SUCCESS;
  return told ? found : Canary{};
}

// Whether an idle stream's context is still the one that it was made in.
bool is_alive(const SluiceCudaStream& stream) {
  const Canary found = look_at(stream.canary);
  return found.id != 0 && found.id == stream.canary_id && found.context == stream.context;
}

void destroy(SluiceCudaStream* stream) {
  for (const CUevent mark : stream->marks) {
    if (mark) driver().cuEventDestroy_v2(mark);
  }
  if (stream->stream) driver().cuStreamDestroy_v2(stream->stream);
  if (stream->canary) driver().cuMemFree_v2(stream->canary);
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
  if (cuda.cuMemAlloc_v2(&made->canary, 1) != CUDA_SUCCESS) made->canary = 0;
  made->canary_id = made->canary ? look_at(made->canary).id : 0;
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
  if (stream) stream->begin = stream->end = 0;
  return stream;
}

SluiceCudaStream* StreamPool::take_idle(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (SluiceCudaStream** link = &idle_; *link; link = &(*link)->next) {
    const bool fits = (*link)->context == context && is_alive(**link);
    if (fits) return std::exchange(*link, (*link)->next);
  }
  return nullptr;
}

void StreamPool::drop_gone() {
  const std::lock_guard lock(mutex_);
  for (SluiceCudaStream** link = &idle_; *link;) {
    if (is_alive(**link)) {
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
  if (done && stream->canary_id != 0) {
    const std::lock_guard lock(mutex_);
    stream->next = idle_;
    idle_ = stream;
    return;
  }
  char why[sluice_cuda_why];
  const Current current(stream->context, why);
  stream->canary = 0;  // it stays: to free memory waits for the device, which may be stuck
  destroy(stream);
}

}  // namespace sluice::cuda
