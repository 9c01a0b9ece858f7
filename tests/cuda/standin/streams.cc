// SPDX-License-Identifier: BSD-3-Clause
//
// Streams, events, and the thread that runs their operations.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cuda/standin/driver.h"

namespace standin {

OperationRef Driver::enqueue(Stream* stream, std::function<void()> run,
                             std::vector<AllocationRef> uses) {
  auto operation = std::make_shared<Operation>();
  operation->number = next_operation_++;
  operation->stream = stream;
  operation->run = std::move(run);
  operation->uses = std::move(uses);
  stream->queue.push_back(operation);
  protect_managed();
  if (!working_) {
    working_ = true;
    std::thread([this] { work(); }).detach();
  }
  changed.notify_all();
  return operation;
}

void Driver::wait(const OperationRef& operation, Lock* lock) {
  changed.wait(*lock, [&] { return operation->done; });
}

void Driver::wait(const Stream* stream, Lock* lock) {
  if (!stream->queue.empty()) wait(OperationRef(stream->queue.back()), lock);
  if (!stream->legacy) return;
  for (size_t i = 0; i < streams_.size(); ++i) {  // (others may add streams meanwhile)
    const Stream* other = streams_[i];
    if (other == stream || !other->blocking || other->context != stream->context) continue;
    if (!other->queue.empty()) wait(OperationRef(other->queue.back()), lock);
  }
}

void Driver::wait(const Context* context, Lock* lock) {
  ++counter("waits");
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->context != context || streams_[i]->queue.empty()) continue;
    wait(OperationRef(streams_[i]->queue.back()), lock);
  }
}

void Driver::wait_device(int device, Lock* lock) {
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (contexts_[i]->device == device) wait(contexts_[i], lock);
  }
}

void Driver::wait_early(const AllocationRef& allocation, Lock* lock) {
  std::vector<OperationRef> early;
  for (const Stream* stream : streams_) {
    for (const OperationRef& each : stream->queue) {
      const bool uses =
          std::find(each->uses.begin(), each->uses.end(), allocation) != each->uses.end();
      if (each->early && uses) early.push_back(each);
    }
  }
  for (const OperationRef& each : early) wait(each, lock);
}

bool Driver::may_start(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  const Operation& first = *stream.queue.front();
  const bool is_kernel = first.start || first.takes_slot;
  if (first.endless || first.started || (is_kernel && !is_next_kernel(first))) return false;
  const bool ready = std::all_of(first.after.begin(), first.after.end(),
                                 [](const OperationRef& other) { return other->done; });
  if (!ready || !stream.blocking) return ready;
  return std::none_of(streams_.begin(), streams_.end(), [&](const Stream* other) {
    const bool ordered = other != &stream && other->context == stream.context && other->blocking &&
                         (other->legacy || stream.legacy);
    return ordered && !other->queue.empty() && other->queue.front()->number < first.number;
  });
}

// Any operation that may start, when there is one.
OperationRef Driver::choose(Lock* lock) {
  while (true) {
    std::vector<Stream*> ready;
    for (Stream* stream : streams_) {
      if (!held && may_start(*stream)) ready.push_back(stream);
    }
    if (!ready.empty()) return ready[random_() % ready.size()]->queue.front();
    changed.wait(*lock);
  }
}

void Driver::work() {
  Lock lock(mutex);
  while (true) {
    const OperationRef operation = choose(&lock);
    if (operation->run && longest_delay_ > 0 && random_() % 2 == 0) {
      const std::chrono::microseconds delay(random_() % longest_delay_);
      lock.unlock();
      std::this_thread::sleep_for(delay);
      lock.lock();
    }
    if (operation->start) {
      start_kernel(operation, &lock);
      continue;
    }
    const bool runs =
        operation->stream->context->broken == CUDA_SUCCESS && operation->fails == CUDA_SUCCESS;
    if (runs && operation->run) {
      lock.unlock();
      operation->run();
      lock.lock();
    }
    finish(operation);
  }
}

void Driver::finish(const OperationRef& operation) {
  Context* const context = operation->stream->context;
  if (operation->fails != CUDA_SUCCESS && context->broken == CUDA_SUCCESS) {
    const bool lost = operation->fails == CUDA_ERROR_UNKNOWN;
    for (Context* other : contexts_) {
      if (other == context || (lost && other->device == context->device)) {
        other->broken = operation->fails;
      }
    }
  }
  kernels.erase(operation->number);
  operation->done = true;
  operation->run = nullptr;
  operation->uses.clear();
  operation->after.clear();
  operation->stream->queue.pop_front();
  protect_managed();
  changed.notify_all();
}

void Driver::protect_managed() {
  if (is_concurrent) return;
  const bool busy = std::any_of(streams_.begin(), streams_.end(),
                                [](const Stream* stream) { return !stream->queue.empty(); });
  for (const auto& [base, allocation] : memory) {
    if (allocation->kind != Kind::managed) continue;
    mprotect(reinterpret_cast<void*>(base), allocation->physical->bytes,
             busy ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
}

void Driver::vacate() {
  for (const Stream* stream : streams_) {
    for (const OperationRef& each : stream->queue) each->endless = false;
  }
  changed.notify_all();
}

namespace {

CUresult create(CUstream* stream, unsigned flags) {
  if (!stream || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  if (driver().strikes("stream")) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream = reinterpret_cast<CUstream>(driver().make_stream(current(), flags == 0, false));
  ++counter("streams");
  return CUDA_SUCCESS;
}

CUresult gone(const char* function) {
  return misuse(CUDA_ERROR_INVALID_HANDLE, "%s: no such stream or event", function);
}

}  // namespace
}  // namespace standin

using standin::counter;
using standin::Event;
using standin::Stream;

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  STANDIN_ENTER_UNSAFE(cuStreamCreate);
  return standin::create(stream, flags);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  STANDIN_ENTER_CONTEXT(cuStreamCreateWithPriority);
  return standin::create(stream, flags);
}

// What is in the stream still runs.
CUresult cuStreamDestroy_v2(CUstream handle) {
  STANDIN_ENTER(cuStreamDestroy_v2);
  Stream* const stream =
      reinterpret_cast<uintptr_t>(handle) > 2 ? driver.stream_of(handle) : nullptr;
  if (!stream) return standin::gone("cuStreamDestroy_v2");
  stream->alive = false;
  --counter("streams");
  return stream->context->broken;
}

CUresult cuStreamSynchronize(CUstream handle) {
  STANDIN_ENTER_UNSAFE(cuStreamSynchronize);
  Stream* const stream = driver.stream_of(handle);
  if (!stream) return standin::gone("cuStreamSynchronize");
  if (stream->legacy) ++counter("waits");
  driver.wait(stream, &lock);
  return stream->context->broken;
}

CUresult cuStreamQuery(CUstream handle) {
  STANDIN_ENTER_UNSAFE(cuStreamQuery);
  const Stream* const stream = driver.stream_of(handle);
  if (!stream) return standin::gone("cuStreamQuery");
  if (stream->context->broken) return stream->context->broken;
  return stream->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  STANDIN_ENTER_CONTEXT(cuStreamWaitEvent);
  Stream* const stream = driver.stream_of(handle);
  const Event* const event = driver.event_of(event_handle);
  if (!stream || !event) return standin::gone("cuStreamWaitEvent");
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!event->last || event->last->done) return CUDA_SUCCESS;
  driver.enqueue(stream, nullptr, {})->after = {event->last};
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  STANDIN_ENTER_UNSAFE(cuEventCreate);
  if (!event || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(driver.make_event(standin::current()));
  ++counter("events");
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  STANDIN_ENTER_CONTEXT(cuEventRecord);
  Stream* const stream = driver.stream_of(stream_handle);
  Event* const event = driver.event_of(handle);
  if (!stream || !event) return standin::gone("cuEventRecord");
  if (event->context != stream->context) {
    return standin::misuse(CUDA_ERROR_INVALID_HANDLE,
                           "cuEventRecord: event and stream of different contexts");
  }
  if (stream->context->broken) return stream->context->broken;
  event->last = driver.enqueue(stream, nullptr, {});
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle) {
  STANDIN_ENTER(cuEventQuery);
  if (const CUresult wrong = driver.refuse_unsafe(); wrong) return wrong;
  const Event* const event = driver.event_of(handle);
  if (!event) return standin::gone("cuEventQuery");
  if (event->context->broken) return event->context->broken;
  return !event->last || event->last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  STANDIN_ENTER(cuEventSynchronize);
  if (const CUresult wrong = driver.refuse_unsafe(); wrong) return wrong;
  const Event* const event = driver.event_of(handle);
  if (!event) return standin::gone("cuEventSynchronize");
  const standin::OperationRef last = event->last;
  if (last) driver.wait(last, &lock);
  return event->context->broken;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  STANDIN_ENTER(cuEventDestroy_v2);
  Event* const event = driver.event_of(handle);
  if (!event) return standin::gone("cuEventDestroy_v2");
  event->alive = false;
  event->last = nullptr;
  --counter("events");
  return event->context->broken;
}

void standin_occupy(CUstream handle) {
  standin::Driver& driver = standin::driver();
  const standin::Lock lock(driver.mutex);
  driver.enqueue(driver.stream_of(handle), nullptr, {})->endless = true;
}
