// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/streams.h"

#include <sched.h>

#include <cstdio>
#include <memory>
#include <new>
#include <utility>

namespace sluice::cuda {
namespace {

// The current context, if it is one of this device.
CUcontext current_of(int device) {
  CUcontext current = nullptr;
  CUdevice own = -1, wanted = -2;
  const Driver& cuda = driver();
  if (cuda.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current) return nullptr;
  if (cuda.cuCtxGetDevice(&own) != CUDA_SUCCESS) return nullptr;
  if (cuda.cuDeviceGet(&wanted, device) != CUDA_SUCCESS) return nullptr;
  return own == wanted ? current : nullptr;
}

bool retain(int device, Context* context, char* why) {
  CUdevice handle = -1;
  const Driver& cuda = driver();
  if (!is_success("cuDeviceGet", cuda.cuDeviceGet(&handle, device), why)) return false;
  if (!is_success("cuDevicePrimaryCtxRetain",
                  cuda.cuDevicePrimaryCtxRetain(&context->handle, handle), why)) {
    return false;
  }
  context->retained = device;
  return true;
}

void destroy(SluiceCudaStream* stream) {
  for (const CUevent mark : stream->marks) {
    if (mark) driver().cuEventDestroy_v2(mark);
  }
  if (stream->stream) driver().cuStreamDestroy_v2(stream->stream);
  delete stream;
}

// Its context must be current.
SluiceCudaStream* make(char* why) {
  auto* const made = new (std::nothrow) SluiceCudaStream;
  if (!made) {
    std::snprintf(why, sluice_cuda_why, "no memory for a stream");
    return nullptr;
  }
  bool ok = is_success("cuStreamCreate",
                       driver().cuStreamCreate(&made->stream, CU_STREAM_NON_BLOCKING), why);
  for (CUevent& mark : made->marks) {
    ok = ok &&
         is_success("cuEventCreate", driver().cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING), why);
  }
  if (ok) return made;
  destroy(made);
  return nullptr;
}

}  // namespace

bool find_context(const SluiceCudaPlace& place, Context* context, char* why) {
  context->handle = static_cast<CUcontext>(place.context);
  if (!context->handle) context->handle = current_of(place.device);
  return context->handle || retain(place.device, context, why);
}

void release(int retained) {
  CUdevice handle = -1;
  if (retained < 0 || !driver().cuDevicePrimaryCtxRelease_v2) return;
  if (driver().cuDeviceGet(&handle, retained) != CUDA_SUCCESS) return;
  driver().cuDevicePrimaryCtxRelease_v2(handle);
}

SluiceCudaStream* StreamPool::open(const SluiceCudaPlace& place, char* why) {
  Context context;
  if (!find_context(place, &context, why)) return nullptr;
  unsigned long long id = 0;
  if (driver().cuCtxGetId && driver().cuCtxGetId(context.handle, &id) != CUDA_SUCCESS) id = 0;
  SluiceCudaStream* stream = id != 0 ? take_idle(id) : nullptr;
  if (!stream) {
    const Current current(context.handle, why);
    stream = current ? make(why) : nullptr;
  }
  if (!stream) {
    release(context.retained);
    return nullptr;
  }
  stream->context = context.handle;
  stream->id = id;
  stream->begin = stream->end = 0;
  stream->retained = context.retained;
  return stream;
}

SluiceCudaStream* StreamPool::take_idle(unsigned long long id) {
  const std::lock_guard lock(mutex_);
  for (SluiceCudaStream** link = &idle_; *link; link = &(*link)->next) {
    if ((*link)->id == id) return std::exchange(*link, (*link)->next);
  }
  return nullptr;
}

bool StreamPool::close(SluiceCudaStream* stream, char* why) {
  const int retained = std::exchange(stream->retained, -1);
  CUresult result = CUDA_SUCCESS;
  bool kept = false, ok = false;
  {
    const Current current(stream->context, why);
    ok = current &&
         is_success("cuEventRecord", driver().cuEventRecord(stream->marks[0], stream->stream), why);
    while (ok && (result = driver().cuEventQuery(stream->marks[0])) == CUDA_ERROR_NOT_READY) {
      sched_yield();
    }
    ok = ok && is_success("copy", result, why);
    kept = ok && stream->id != 0 && retained < 0;
    if (!kept) destroy(stream);
  }
  if (kept) {
    const std::lock_guard lock(mutex_);
    stream->next = idle_;
    idle_ = stream;
  }
  release(retained);
  return ok;
}

}  // namespace sluice::cuda
