// SPDX-License-Identifier: BSD-3-Clause
//
// libsluice-cuda.so: the table of functions (module.h).
#include "cuda/module.h"

#include <cstdio>

#include "cuda/driver.h"
#include "cuda/kind.h"
#include "cuda/pinned.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

constinit PinnedPool pinned;
constinit StreamPool streams;

int begin(void* handle, size_t most_pinned, char* why) {
  if (!bind_driver(handle, why)) return -1;
  pinned.set_bound(most_pinned);
  return 0;
}

void end() { pinned.clear(); }

void* reserve(const SluiceCudaPlace* place, size_t bytes) {
  char why[sluice_cuda_why];
  Context context;
  if (!find_context(*place, &context, why)) return nullptr;
  void* const memory = pinned.reserve(context.handle, bytes);
  release(context.retained);
  return memory;
}

void give_back(void* memory) { pinned.give_back(memory); }

SluiceCudaStream* open(const SluiceCudaPlace* place, char* why) {
  return streams.open(*place, why);
}

int close(SluiceCudaStream* stream, char* why) { return streams.close(stream, why) ? 0 : -1; }

// Begins a copy; the stream's context must be current.
bool copy_one(const SluiceCudaStream& stream, void* device, void* host, size_t bytes,
              bool to_device, char* why) {
  const Driver& cuda = driver();
  if (to_device) {
    return is_success("cuMemcpyHtoDAsync",
                      cuda.cuMemcpyHtoDAsync_v2(address_of(device), host, bytes, stream.stream),
                      why);
  }
  return is_success("cuMemcpyDtoHAsync",
                    cuda.cuMemcpyDtoHAsync_v2(host, address_of(device), bytes, stream.stream), why);
}

int copy(SluiceCudaStream* stream, void* device, void* host, size_t bytes, int to_device,
         char* why) {
  const Current current(stream->context, why);
  return current && copy_one(*stream, device, host, bytes, to_device != 0, why) ? 0 : -1;
}

bool fits_2d(const SluiceCudaRuns& runs) {
  return runs.count > 1 && runs.stride >= static_cast<ptrdiff_t>(runs.bytes) &&
         runs.stride <= static_cast<ptrdiff_t>(most_pitch);
}

CUDA_MEMCPY2D describe_2d(const SluiceCudaRuns& runs, bool to_device) {
  CUDA_MEMCPY2D copy{};
  const auto pitch = static_cast<size_t>(runs.stride);
  copy.WidthInBytes = runs.bytes;
  copy.Height = runs.count;
  if (to_device) {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = runs.host;
    copy.srcPitch = runs.bytes;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address_of(runs.device);
    copy.dstPitch = pitch;
  } else {
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address_of(runs.device);
    copy.srcPitch = pitch;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = runs.host;
    copy.dstPitch = runs.bytes;
  }
  return copy;
}

int copy_runs(SluiceCudaStream* stream, const SluiceCudaRuns* runs, int to_device, char* why) {
  const Current current(stream->context, why);
  if (!current) return -1;
  if (fits_2d(*runs)) {
    const CUDA_MEMCPY2D all = describe_2d(*runs, to_device != 0);
    const CUresult result = driver().cuMemcpy2DAsync_v2(&all, stream->stream);
    return is_success("cuMemcpy2DAsync", result, why) ? 0 : -1;
  }
  auto device = reinterpret_cast<uintptr_t>(runs->device);
  auto* host = static_cast<char*>(runs->host);
  for (size_t i = 0; i < runs->count; ++i) {
    auto* const run = reinterpret_cast<void*>(device);
    if (!copy_one(*stream, run, host, runs->bytes, to_device != 0, why)) return -1;
    device += static_cast<uintptr_t>(runs->stride);
    host += runs->bytes;
  }
  return 0;
}

int mark(SluiceCudaStream* stream, unsigned number, char* why) {
  const Current current(stream->context, why);
  if (!current) return -1;
  const CUresult result = driver().cuEventRecord(stream->marks[number], stream->stream);
  return is_success("cuEventRecord", result, why) ? 0 : -1;
}

int passed(SluiceCudaStream* stream, unsigned number, char* why) {
  const Current current(stream->context, why);
  if (!current) return -1;
  const CUresult result = driver().cuEventQuery(stream->marks[number]);
  if (result == CUDA_ERROR_NOT_READY) return 0;
  return is_success("an asynchronous copy", result, why) ? 1 : -1;
}

int list(SluiceCudaDevices* devices, char* why) {
  const Driver& cuda = driver();
  *devices = {};
  if (!is_success("cuInit", cuda.cuInit(0), why) ||
      !is_success("cuDriverGetVersion", cuda.cuDriverGetVersion(&devices->driver), why) ||
      !is_success("cuDeviceGetCount", cuda.cuDeviceGetCount(&devices->count), why)) {
    return -1;
  }
  for (int i = 0; i < devices->count && i < sluice_cuda_devices; ++i) {
    CUdevice device = 0;
    char* const name = devices->names[i];
    if (cuda.cuDeviceGet(&device, i) != CUDA_SUCCESS ||
        cuda.cuDeviceGetName(name, sizeof devices->names[i], device) != CUDA_SUCCESS) {
      std::snprintf(name, sizeof devices->names[i], "device %d", i);
    }
  }
  return 0;
}

constexpr SluiceCuda table{
    SLUICE_CUDA_VERSION, begin, end,    find, reserve, give_back, open, close, copy,
    copy_runs,           mark,  passed, list};

}  // namespace
}  // namespace sluice::cuda

extern "C" __attribute__((visibility("default"))) const SluiceCuda* sluice_cuda() {
  return &sluice::cuda::table;
}
