// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/streams.h"

#include <sched.h>

#include <cstdio>
#include <memory>
#include <new>
#include <utility>

namespace sluice::cuda {
namespace {

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
SluiceCudaStream* make(CUcontext context, const SluiceCudaSettings& settings, char* why) {
  auto* const made = new (std::nothrow) SluiceCudaStream;
  if (!made) {
    std::snprintf(why, sluice_cuda_why, "no memory for a stream");
    return nullptr;
  }
  const Driver& cuda = driver();
  const CUstream_flags flags =
      settings.blocking_streams ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  made->context = context;
  bool ok = is_success("cuStreamCreate", cuda.cuStreamCreate(&made->stream, flags), why);
  for (CUevent& mark : made->marks) {
    ok = ok && is_success("cuEventCreate", cuda.cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING), why);
  }
  if (!ok) {
    destroy(made);
    return nullptr;
  }
  if (cuda.cuMemAlloc_v2(&made->canary, 1) != CUDA_SUCCESS) made->canary = 0;
  made->canary_id = made->canary ? look_at(made->canary).id : 0;
  if (settings.sync_contexts) make_copies_synchronous();
  return made;
}

}  // namespace

bool wait_for(CUevent mark, const char* what, char* why) {
  constexpr int spins = 100;
  CUresult result = driver().cuEventQuery(mark);
  for (int i = 0; result == CUDA_ERROR_NOT_READY; ++i) {
    if (i > spins) sched_yield();
    result = driver().cuEventQuery(mark);
  }
  return is_success(what, result, why);
}

SluiceCudaStream* StreamPool::open(const SluiceCudaPlace& place, char* why) {
  const CUcontext context = find_context(place, why);
  if (!context) return nullptr;
  SluiceCudaStream* stream = take_idle(context);
  if (!stream) {
    drop_gone();
    const Current current(context, why);
    stream = current ? make(context, settings_, why) : nullptr;
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

bool StreamPool::close(SluiceCudaStream* stream, char* why) {
  bool kept = false, ok = false;
  {
    const Current current(stream->context, why);
    ok = current &&
         is_success("cuEventRecord", driver().cuEventRecord(stream->marks[0], stream->stream), why);
    ok = ok && wait_for(stream->marks[0], "copy", why);
    kept = ok && stream->canary_id != 0;
    if (!kept) destroy(stream);
  }
  if (kept) {
    const std::lock_guard lock(mutex_);
    stream->next = idle_;
    idle_ = stream;
  }
  return ok;
}

}  // namespace sluice::cuda
