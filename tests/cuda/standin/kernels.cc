// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels of other stand-ins: one at a time on a device, however long it runs.
#include <algorithm>
#include <cstring>

#include "tests/cuda/standin/driver.h"

namespace standin {

// A kernel whose own stream is not at it yet holds nobody up.
bool Driver::is_next_kernel(const Operation& operation) const {
  return std::none_of(kernels.begin(), kernels.end(), [&](const auto& each) {
    const OperationRef& other = each.second;
    if (other->stream->context->device != operation.stream->context->device) return false;
    const bool is_earlier = other->number < operation.number &&
                            other->stream->queue.front() == other &&
                            std::all_of(other->after.begin(), other->after.end(),
                                        [](const OperationRef& before) { return before->done; });
    return other->started || is_earlier;
  });
}

void Driver::start_kernel(const OperationRef& operation, Lock* lock) {
  operation->started = true;
  const CUresult error = operation->stream->context->broken;
  lock->unlock();
  operation->start(operation->argument, operation->number, error);
  lock->lock();
}

void Driver::end_kernel(uint64_t number) {
  const auto found = kernels.find(number);
  if (found == kernels.end()) return;
  const OperationRef operation = found->second;
  kernels.erase(found);
  finish(operation);
}

// (Memory that is mapped says whose it is; else there is no access to another device's here.)
bool is_usable(const Allocation& allocation, int device) {
  if (!allocation.serves(device) || allocation.is_gone()) return false;
  const bool is_given = allocation.in_host() || allocation.kind == Kind::mapped;
  return is_given || allocation.device == device;
}

namespace {

// Calls `use` for each piece that lies in one allocation; false, if not all of it may be used.
template <typename Use>
bool in_pieces(int device, CUdeviceptr pointer, size_t bytes, Use use) {
  uintptr_t at = pointer;
  for (size_t left = bytes; left > 0;) {
    const AllocationRef found = driver().find(at);
    if (!found || !is_usable(*found, device)) return false;
    const size_t piece = std::min<size_t>(left, found->end() - at);
    if (piece < left && found->kind != Kind::mapped) return false;
    std::byte* const reach = found->physical ? found->physical->reach + (at - found->base)
                                             : reinterpret_cast<std::byte*>(at);
    use(reach, bytes - left, piece);
    at += piece;
    left -= piece;
  }
  return true;
}

bool check(bool is_right, const char* what, CUdeviceptr pointer, size_t bytes) {
  if (!is_right) {
    (void)misuse(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel %s %zu bytes at %#llx, which it may not use",
                 what, bytes, pointer);
  }
  return is_right;
}

}  // namespace
}  // namespace standin

uint64_t standin_launch(CUstream handle, standin_start* start, void* argument) {
  standin::Driver& driver = standin::driver();
  const standin::Lock lock(driver.mutex);
  if (standin::usable_context() == CUDA_ERROR_INVALID_CONTEXT) return 0;
  standin::Stream* const stream = driver.stream_of(handle);
  if (!stream) return 0;
  const standin::OperationRef operation = driver.enqueue(stream, nullptr, {});
  operation->start = start;
  operation->argument = argument;
  driver.kernels[operation->number] = operation;
  return operation->number;
}

void standin_end_kernel(uint64_t kernel) {
  const standin::Lock lock(standin::driver().mutex);
  standin::driver().end_kernel(kernel);
}

int standin_stream_device(CUstream handle) {
  standin::Driver& driver = standin::driver();
  const standin::Lock lock(driver.mutex);
  if (!standin::current()) return -1;
  const standin::Stream* const stream = driver.stream_of(handle);
  return stream ? stream->context->device : -1;
}

bool standin_may_use(int device, CUdeviceptr pointer, size_t bytes) {
  const standin::Lock lock(standin::driver().mutex);
  return standin::in_pieces(device, pointer, bytes, [](std::byte*, size_t, size_t) {});
}

bool standin_load(int device, void* to, CUdeviceptr from, size_t bytes) {
  const standin::Lock lock(standin::driver().mutex);
  const auto copy = [&](const std::byte* reach, size_t at, size_t piece) {
    std::memcpy(static_cast<std::byte*>(to) + at, reach, piece);
  };
  return standin::check(standin::in_pieces(device, from, bytes, copy), "reads", from, bytes);
}

bool standin_store(int device, CUdeviceptr to, const void* from, size_t bytes) {
  const standin::Lock lock(standin::driver().mutex);
  const auto copy = [&](std::byte* reach, size_t at, size_t piece) {
    std::memcpy(reach, static_cast<const std::byte*>(from) + at, piece);
  };
  return standin::check(standin::in_pieces(device, to, bytes, copy), "writes", to, bytes);
}

void standin_misuse(const char* text) { (void)standin::misuse(CUDA_SUCCESS, "%s", text); }

void standin_add(const char* name, int64_t number) { standin::counter(name) += number; }
