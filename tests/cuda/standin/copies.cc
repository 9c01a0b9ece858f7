// SPDX-License-Identifier: BSD-3-Clause
//
// Copies: checked when they are enqueued, carried out by the driver's thread.
#include <cstring>

#include "tests/cuda/standin/driver.h"

namespace standin {
namespace {

enum class Place : uint8_t { any, host, device };

// One end of a copy: rows at equal distances.
struct End {
  Place wanted;
  uintptr_t address;
  size_t pitch;
  std::vector<AllocationRef> parts = {};  // none: pageable
  std::vector<std::byte> kept = {};       // of a pageable source

  bool is_pageable() const { return parts.empty(); }
  bool in_host() const { return is_pageable() || parts.front()->in_host(); }
  // Where the driver finds the byte at `at`, and how many follow there, up to `most`.
  std::byte* reach(uintptr_t at, size_t* most) const {
    if (!kept.empty()) return const_cast<std::byte*>(kept.data()) + (at - address);
    for (const AllocationRef& part : parts) {
      if (!part->physical || at < part->base || at >= part->end()) continue;
      *most = std::min(*most, part->end() - at);
      return part->physical->reach + (at - part->base);
    }
    return reinterpret_cast<std::byte*>(at);
  }
};

struct Copy {
  End to, from;
  size_t width, height;
  const char* function;
};

size_t span_of(const End& end, size_t width, size_t height) {
  return (height - 1) * end.pitch + width;
}

// Finds the allocations of an end; says what is wrong with it, if anything.
CUresult locate(End* end, const Copy& copy, int device) {
  uintptr_t at = end->address;
  const uintptr_t last = at + span_of(*end, copy.width, copy.height);
  Driver& all = driver();
  AllocationRef found = all.find(at);
  if (!found) {
    const auto next = all.memory.lower_bound(at);
    const bool enters = next != all.memory.end() && next->first < last;
    const bool pageable = end->wanted != Place::device && !enters;
    return pageable ? CUDA_SUCCESS
                    : misuse(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at %#zx are no allocation",
                             copy.function, static_cast<size_t>(last - at), at);
  }
  if (end->wanted == Place::host && !found->in_host()) {
    return misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx is in device memory", copy.function, at);
  }
  while (true) {
    if (!found->serves(device)) {
      return misuse(CUDA_ERROR_INVALID_VALUE, "%s: device %d may not use %#zx", copy.function,
                    device, at);
    }
    if (found->is_gone()) {
      return misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx was freed by its process", copy.function,
                    at);
    }
    end->parts.push_back(found);
    if (last <= found->end()) return CUDA_SUCCESS;
    at = found->end();
    const AllocationRef next = found->kind == Kind::mapped ? all.find(at) : nullptr;
    if (!next || next->kind != Kind::mapped) break;
    found = next;
  }
  return misuse(CUDA_ERROR_INVALID_VALUE, "%s: leaves its allocation by %zu bytes", copy.function,
                static_cast<size_t>(last - at));
}

void move(const Copy& copy) {
  for (size_t row = 0; row < copy.height; ++row) {
    uintptr_t to = copy.to.address + row * copy.to.pitch;
    uintptr_t from = copy.from.address + row * copy.from.pitch;
    for (size_t left = copy.width; left > 0;) {
      size_t bytes = left;
      std::byte* const source = copy.from.reach(from, &bytes);
      std::byte* const target = copy.to.reach(to, &bytes);
      std::memmove(target, source, bytes);
      to += bytes, from += bytes, left -= bytes;
    }
  }
}

void count(const Copy& copy) {
  ++counter("copies");
  const bool out = copy.to.in_host(), in = copy.from.in_host();
  const char* const name = out == in ? "bytes_within" : out ? "bytes_out" : "bytes_in";
  counter(name) += static_cast<int64_t>(copy.width * copy.height);
}

void keep_source(Copy* copy) {
  const size_t bytes = span_of(copy->from, copy->width, copy->height);
  std::vector<std::byte> kept(bytes);
  for (size_t row = 0; row < copy->height; ++row) {  // nothing between the rows
    const size_t at = row * copy->from.pitch;
    std::memcpy(kept.data() + at, reinterpret_cast<void*>(copy->from.address + at), copy->width);
  }
  copy->from.kept = std::move(kept);
}

// Enqueues a copy. Pageable memory as the driver does: a source is read before this returns, and
// this returns when a target is written.
CUresult submit(Copy copy, CUstream handle, bool synchronous, Lock* lock) {
  Driver& all = driver();
  Stream* const stream = all.stream_of(handle);
  if (!stream) return misuse(CUDA_ERROR_INVALID_HANDLE, "%s: no such stream", copy.function);
  if (stream->context->broken) return stream->context->broken;
  if (copy.width == 0 || copy.height == 0) return CUDA_SUCCESS;
  const int device = stream->context->device;
  if (const CUresult wrong = locate(&copy.to, copy, device)) return wrong;
  if (const CUresult wrong = locate(&copy.from, copy, device)) return wrong;
  count(copy);
  const bool late_target = copy.to.is_pageable();
  const bool is_early = all.returns_early && copy.from.is_pageable() && !copy.to.in_host() &&
                        copy.width * copy.height <= size_t{64} << 10 &&
                        !copy.to.parts.front()->sync_memops &&
                        !(stream->context->flags & CU_CTX_SYNC_MEMOPS);
  if (!synchronous && (late_target || copy.from.is_pageable())) ++counter("pageable");
  if (copy.from.is_pageable()) keep_source(&copy);
  std::vector<AllocationRef> uses = copy.to.parts;
  uses.insert(uses.end(), copy.from.parts.begin(), copy.from.parts.end());
  const OperationRef operation = all.enqueue(
      stream, [copy = std::move(copy)] { move(copy); }, std::move(uses));
  if (all.strikes("copy")) operation->fails = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (all.strikes("lose_device")) operation->fails = CUDA_ERROR_UNKNOWN;
  if (!synchronous && !late_target) return CUDA_SUCCESS;
  operation->early = is_early && synchronous;
  if (is_early) return CUDA_SUCCESS;
  ++stream->context->launching;
  all.wait(operation, lock);
  --stream->context->launching;
  all.changed.notify_all();
  return stream->context->broken;
}

CUresult submit(Place to_place, uintptr_t to, Place from_place, uintptr_t from, size_t bytes,
                CUstream stream, bool synchronous, const char* function, Lock* lock) {
  return submit({{to_place, to, 0}, {from_place, from, 0}, bytes, 1, function}, stream, synchronous,
                lock);
}

uintptr_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// One end of a 2D copy; width: to check the pitch.
CUresult read_end(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                  size_t pitch, const CUDA_MEMCPY2D& copy, End* end) {
  constexpr size_t most_pitch = 0x7fffffff;
  if (copy.Height > 1 && (pitch < x + copy.WidthInBytes || pitch > most_pitch)) {
    return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemcpy2DAsync_v2: pitch %zu for %zu bytes", pitch,
                  copy.WidthInBytes);
  }
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *end = {Place::host, number(host), pitch};
      break;
    case CU_MEMORYTYPE_DEVICE:
      *end = {Place::device, static_cast<uintptr_t>(device), pitch};
      break;
    case CU_MEMORYTYPE_UNIFIED:
      *end = {Place::any, static_cast<uintptr_t>(device), pitch};
      break;
    default:
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemcpy2DAsync_v2: memory type %u",
                    static_cast<unsigned>(type));
  }
  end->address += y * pitch + x;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace standin

using standin::number;
using standin::Place;
using standin::submit;

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  STANDIN_ENTER_CONTEXT(cuMemcpy);
  return submit(Place::any, to, Place::any, from, bytes, nullptr, true, __func__, &lock);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemcpyAsync);
  return submit(Place::any, to, Place::any, from, bytes, stream, false, __func__, &lock);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  STANDIN_ENTER_CONTEXT(cuMemcpyHtoD_v2);
  return submit(Place::device, to, Place::host, number(from), bytes, nullptr, true, __func__,
                &lock);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  STANDIN_ENTER_CONTEXT(cuMemcpyDtoH_v2);
  return submit(Place::host, number(to), Place::device, from, bytes, nullptr, true, __func__,
                &lock);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  STANDIN_ENTER_CONTEXT(cuMemcpyDtoD_v2);
  return submit(Place::device, to, Place::device, from, bytes, nullptr, false, __func__, &lock);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemcpyHtoDAsync_v2);
  return submit(Place::device, to, Place::host, number(from), bytes, stream, false, __func__,
                &lock);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemcpyDtoHAsync_v2);
  return submit(Place::host, number(to), Place::device, from, bytes, stream, false, __func__,
                &lock);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemcpyDtoDAsync_v2);
  return submit(Place::device, to, Place::device, from, bytes, stream, false, __func__, &lock);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* given, CUstream stream) {
  STANDIN_ENTER_CONTEXT(cuMemcpy2DAsync_v2);
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  standin::Copy copy{{}, {}, given->WidthInBytes, given->Height, __func__};
  CUresult wrong =
      standin::read_end(given->srcMemoryType, given->srcHost, given->srcDevice, given->srcXInBytes,
                        given->srcY, given->srcPitch, *given, &copy.from);
  if (wrong) return wrong;
  wrong = standin::read_end(given->dstMemoryType, given->dstHost, given->dstDevice,
                            given->dstXInBytes, given->dstY, given->dstPitch, *given, &copy.to);
  if (wrong) return wrong;
  return submit(std::move(copy), stream, false, &lock);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
  STANDIN_ENTER_CONTEXT(cuMemsetD8_v2);
  if (bytes == 0) return CUDA_SUCCESS;
  standin::Copy copy{{Place::device, to, 0}, {}, bytes, 1, __func__};
  if (const CUresult wrong = standin::locate(&copy.to, copy, standin::current()->device)) {
    return wrong;
  }
  std::vector<standin::AllocationRef> uses = copy.to.parts;
  const auto fill = [copy = std::move(copy), value] {
    for (size_t done = 0, most; done < copy.width; done += most) {
      most = copy.width - done;
      std::byte* const at = copy.to.reach(copy.to.address + done, &most);
      std::memset(at, value, most);
    }
  };
  driver.enqueue(standin::current()->legacy, fill, std::move(uses));
  return CUDA_SUCCESS;
}
