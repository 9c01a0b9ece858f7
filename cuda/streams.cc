// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/streams.h"

#include <sched.h>

#include <cstdio>
#include <memory>
#include <new>
#include <utility>

namespace sluice::cuda {
namespace {

// 0: the driver gives contexts no ids, or the context is gone.
unsigned long long id_of(CUcontext context) {
  unsigned long long id = 0;
  const auto ask = driver().cuCtxGetId;
  return ask && ask(context, &id) == CUDA_SUCCESS ? id : 0;
}

// Whether an idle stream's context is still the one that it was made in.
bool is_alive(const SluiceCudaStream& stream) { return id_of(stream.context) == stream.id; }

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
  Context context;
  if (!find_context(place, &context, why)) return nullptr;
  const unsigned long long id = id_of(context.handle);
  SluiceCudaStream* stream = id != 0 ? take_idle(id) : nullptr;
  if (!stream) {
    drop_gone();
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

// Forgets the streams of contexts that are gone.
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
  const int retained = std::exchange(stream->retained, -1);
  bool kept = false, ok = false;
  {
    const Current current(stream->context, why);
    ok = current &&
         is_success("cuEventRecord", driver().cuEventRecord(stream->marks[0], stream->stream), why);
    ok = ok && wait_for(stream->marks[0], "copy", why);
    kept = ok && stream->id != 0;
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
