// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/copies.h"

#include <algorithm>

#include "cuda/packing.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

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

bool copy_rows(const SluiceCudaStream& stream, const SluiceCudaRuns& runs, size_t rows,
               bool to_device, char* why) {
  const CUDA_MEMCPY2D all = describe_rows(runs, rows, to_device);
  return is_success("cuMemcpy2DAsync", driver().cuMemcpy2DAsync_v2(&all, stream.stream), why);
}

// Whether to copy a run to a device as two rows. As one run, short ones travel in the commands of
// the device's compute engine, which only one process has at a time: where two share the device
// that takes 145 to 280 us (H200, up to 24 KB). Rows are copied by a copy engine, in 8 to 12 us. (A
// run may lie in several allocations only if the program has mapped them, in no context.)
bool should_halve(SluiceCudaStream* stream, const SluiceCudaRuns& run) {
  constexpr size_t least = size_t{32} << 10;
  if (run.bytes >= least || run.bytes % 2 != 0) return false;
  const CUdeviceptr first = address_of(run.device);
  return stream->is_in_context || end_of_allocation(stream, first) - first >= run.bytes;
}

bool copy_run(SluiceCudaStream* stream, const SluiceCudaRuns& run, bool to_device, char* why) {
  const Driver& cuda = driver();
  const CUdeviceptr device = address_of(run.device);
  if (!to_device) {
    return is_success("cuMemcpyDtoHAsync",
                      cuda.cuMemcpyDtoHAsync_v2(run.host, device, run.bytes, stream->stream), why);
  }
  if (should_halve(stream, run)) {
    const size_t half = run.bytes / 2;
    const SluiceCudaRuns halves{run.device, run.host, static_cast<ptrdiff_t>(half), half, 2, half};
    return copy_rows(*stream, halves, 2, to_device, why);
  }
  return is_success("cuMemcpyHtoDAsync",
                    cuda.cuMemcpyHtoDAsync_v2(device, run.host, run.bytes, stream->stream), why);
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
    const bool done = rows == 1 ? copy_run(stream, runs, to_device, why)
                                : copy_rows(*stream, runs, rows, to_device, why);
    if (!done) return false;
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
