// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/copies.h"

#include <algorithm>

#include "cuda/packing.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

bool copy_run(const SluiceCudaStream& stream, const SluiceCudaRuns& runs, bool to_device,
              char* why) {
  const Driver& cuda = driver();
  const CUdeviceptr device = address_of(runs.device);
  if (to_device) {
    return is_success("cuMemcpyHtoDAsync",
                      cuda.cuMemcpyHtoDAsync_v2(device, runs.host, runs.bytes, stream.stream), why);
  }
  return is_success("cuMemcpyDtoHAsync",
                    cuda.cuMemcpyDtoHAsync_v2(runs.host, device, runs.bytes, stream.stream), why);
}

CUDA_MEMCPY2D describe_rows(const SluiceCudaRuns& runs, size_t rows, bool to_device) {
  CUDA_MEMCPY2D copy{};
  const auto pitch = static_cast<size_t>(runs.device_stride);
  copy.WidthInBytes = runs.bytes;
  copy.Height = rows;
  copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcPitch = to_device ? runs.host_stride : pitch;
  copy.dstPitch = to_device ? pitch : runs.host_stride;
  if (to_device) {
    copy.srcHost = runs.host;
    copy.dstDevice = address_of(runs.device);
  } else {
    copy.srcDevice = address_of(runs.device);
    copy.dstHost = runs.host;
  }
  return copy;
}

// The end of the allocation that an address is in; the address itself if the driver does not tell.
// Between two calls memory may be freed; in one it stays.
CUdeviceptr end_of_allocation(SluiceCudaStream* stream, CUdeviceptr address) {
  if (address >= stream->begin && address < stream->end) return stream->end;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (driver().cuMemGetAddressRange_v2(&base, &bytes, address) != CUDA_SUCCESS) return address;
  stream->begin = base;
  stream->end = base + bytes;
  return stream->end;
}

// How many of the runs can be the rows of one copy. With MPI_BOTTOM, or where memory is mapped in
// pieces, they may lie in several allocations.
size_t count_rows(SluiceCudaStream* stream, const SluiceCudaRuns& runs) {
  const bool fits = runs.count > 1 && runs.device_stride >= static_cast<ptrdiff_t>(runs.bytes) &&
                    runs.device_stride <= static_cast<ptrdiff_t>(most_pitch) &&
                    runs.host_stride >= runs.bytes && runs.host_stride <= most_pitch;
  if (!fits) return 1;
  const CUdeviceptr first = address_of(runs.device);
  const size_t room = end_of_allocation(stream, first) - first;
  if (room < runs.bytes) return 1;
  return std::min(runs.count, (room - runs.bytes) / static_cast<size_t>(runs.device_stride) + 1);
}

bool copy_runs(SluiceCudaStream* stream, SluiceCudaRuns runs, bool to_device, char* why) {
  while (runs.count > 0) {
    const size_t rows = count_rows(stream, runs);
    if (rows == 1) {
      if (!copy_run(*stream, runs, to_device, why)) return false;
    } else {
      const CUDA_MEMCPY2D all = describe_rows(runs, rows, to_device);
      const CUresult result = driver().cuMemcpy2DAsync_v2(&all, stream->stream);
      if (!is_success("cuMemcpy2DAsync", result, why)) return false;
    }
    runs.device = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(runs.device) +
                                          rows * static_cast<uintptr_t>(runs.device_stride));
    runs.host = static_cast<char*>(runs.host) + rows * runs.host_stride;
    runs.count -= rows;
  }
  return true;
}

}  // namespace

bool begin_copies(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count,
                  bool to_device, char* why) {
  const Current current(stream->context, why);
  if (!current) return false;
  for (const SluiceCudaRuns* const end = runs + count; runs != end;) {
    size_t packed = 0;
    if (!begin_packed(stream, runs, static_cast<size_t>(end - runs), to_device, &packed, why)) {
      return false;
    }
    if (packed == 0) {
      if (!copy_runs(stream, *runs, to_device, why)) return false;
      packed = 1;
    }
    runs += packed;
  }
  return true;
}

}  // namespace sluice::cuda
