// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/packing.h"

#include <algorithm>

#include "cuda/kernels/arguments.h"
#include "cuda/loaded_kernels.h"
#include "cuda/scratch.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

using kernels::CopyBlocks;
using kernels::CopyRows;

constexpr Kernel rows_kernel{"copy_rows", Image::copy}, blocks_kernel{"copy_blocks", Image::copy};

constexpr size_t short_run = 256;   // bytes; longer ones the driver copies well
constexpr size_t enough_rows = 64;  // of one two-dimensional copy
constexpr size_t enough_copies = 8;
constexpr size_t least_rows = 16;  // of a launch of their own
constexpr size_t least_scratch = size_t{256} << 10, most_scratch = size_t{4} << 20;

// Whether a kernel may move these: on the host they lie one behind the other, and on the device
// none over another.
bool is_packable(const SluiceCudaRuns& runs, bool to_device) {
  const auto bytes = static_cast<ptrdiff_t>(runs.bytes);
  const bool overlaps = runs.device_stride < bytes && runs.device_stride > -bytes;
  if (runs.bytes == 0 || runs.bytes >= short_run) return false;
  return runs.count == 1 || (runs.host_stride == runs.bytes && !(to_device && overlaps));
}

// The first kinds of runs that are one piece in host memory.
struct Group {
  size_t kinds = 0, bytes = 0;
  size_t rows = 0;    // of the kind with most
  size_t copies = 0;  // that the driver would make
};

Group find_group(const SluiceCudaRuns* runs, size_t count, bool to_device) {
  Group group;
  const char* const host = static_cast<const char*>(runs->host);
  for (size_t i = 0; i < count && is_packable(runs[i], to_device); ++i) {
    if (runs[i].host != host + group.bytes) break;
    const bool is_one = runs[i].device_stride >= static_cast<ptrdiff_t>(runs[i].bytes);
    ++group.kinds;
    group.bytes += runs[i].count * runs[i].bytes;
    group.rows = std::max(group.rows, runs[i].count);
    group.copies += is_one ? 1 : runs[i].count;
  }
  return group;
}

// Memory to pack in. Some copies of this call may still be using it: the stream's order keeps them
// apart from later ones.
bool find_scratch(SluiceCudaStream* stream, size_t bytes) {
  char why[sluice_cuda_why];
  if (stream->scratch) return true;
  for (const size_t wanted : {std::clamp(bytes, least_scratch, most_scratch), least_scratch}) {
    stream->scratch = scratch().allocate(stream->context, wanted, why);
    stream->scratch_bytes = wanted;
    if (stream->scratch) return true;
  }
  return false;
}

// The largest unit, up to 16, in which all of these are whole.
unsigned unit_of(unsigned long long numbers) {
  numbers |= kernels::vector_bytes;
  return static_cast<unsigned>(numbers & -numbers);
}

// Collects launches for one piece of scratch.
class Launches {
 public:
  Launches(const SluiceCudaStream& stream, bool to_device, char* why)
      : stream_(stream), to_device_(to_device), why_(why) {}

  // Rows on the device, and where they lie in scratch.
  bool add(const SluiceCudaRuns& rows, CUdeviceptr dense) {
    if (rows.count >= least_rows) return launch_rows(rows, dense);
    auto device = address_of(rows.device);
    for (size_t i = 0; i < rows.count; ++i) {
      if (!add_block(device, dense, rows.bytes)) return false;
      device += static_cast<CUdeviceptr>(rows.device_stride);
      dense += rows.bytes;
    }
    return true;
  }
  bool flush() {
    constexpr size_t warp = 32;
    if (blocks_.blocks == 0) return true;
    const bool done = launch(stream_, blocks_kernel, &blocks_, warp * blocks_.blocks, why_);
    blocks_.blocks = 0;
    return done;
  }

 private:
  bool add_block(CUdeviceptr device, CUdeviceptr dense, size_t bytes) {
    const unsigned unit = unit_of(device | dense | bytes);
    kernels::CopyBlock& block = blocks_.block[blocks_.blocks++];
    block = {to_device_ ? dense : device, to_device_ ? device : dense,
             static_cast<unsigned>(bytes) / unit, unit};
    return blocks_.blocks < kernels::most_blocks || flush();
  }
  bool launch_rows(const SluiceCudaRuns& rows, CUdeviceptr dense) {
    const CUdeviceptr device = address_of(rows.device);
    const auto stride = static_cast<long long>(rows.device_stride);
    const auto bytes = static_cast<long long>(rows.bytes);
    CopyRows call{};
    call.from = to_device_ ? dense : device;
    call.to = to_device_ ? device : dense;
    call.from_stride = to_device_ ? bytes : stride;
    call.to_stride = to_device_ ? stride : bytes;
    call.unit = unit_of(device | dense | static_cast<unsigned long long>(stride | bytes));
    call.units_a_row = static_cast<unsigned>(rows.bytes) / call.unit;
    call.units = static_cast<unsigned>(rows.count) * call.units_a_row;
    return launch(stream_, rows_kernel, &call, call.units, why_);
  }

  const SluiceCudaStream& stream_;
  const bool to_device_;
  char* const why_;
  CopyBlocks blocks_{};
};

// A place among runs.
struct Position {
  size_t kind = 0, row = 0;
};

// Launches for what follows the position, as much as scratch holds, and moves the position on.
// *bytes: of that.
bool launch_piece(const SluiceCudaStream& stream, const SluiceCudaRuns* runs, size_t kinds,
                  bool to_device, Position* at, size_t* bytes, char* why) {
  Launches launches(stream, to_device, why);
  *bytes = 0;
  while (at->kind < kinds) {
    SluiceCudaRuns part = runs[at->kind];
    const size_t room = (stream.scratch_bytes - *bytes) / part.bytes;
    part.device = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(part.device) +
                                          at->row * static_cast<uintptr_t>(part.device_stride));
    part.count = std::min(part.count - at->row, room);
    if (part.count == 0) break;
    if (!launches.add(part, address_of(stream.scratch) + *bytes)) return false;
    *bytes += part.count * part.bytes;
    at->row += part.count;
    if (at->row == runs[at->kind].count) *at = {at->kind + 1, 0};
  }
  return launches.flush();
}

// How much launch_piece would take.
size_t piece_bytes(const SluiceCudaStream& stream, const SluiceCudaRuns* runs, size_t kinds,
                   Position at) {
  size_t bytes = 0;
  for (; at.kind < kinds; at = {at.kind + 1, 0}) {
    const SluiceCudaRuns& part = runs[at.kind];
    const size_t room = (stream.scratch_bytes - bytes) / part.bytes, left = part.count - at.row;
    bytes += std::min(left, room) * part.bytes;
    if (left > room) break;
  }
  return bytes;
}

bool copy_all(const SluiceCudaStream& stream, const SluiceCudaRuns* runs, size_t kinds,
              bool to_device, char* why) {
  const Driver& cuda = driver();
  const CUdeviceptr memory = address_of(stream.scratch);
  auto* host = static_cast<char*>(runs->host);
  for (Position at; at.kind < kinds;) {
    size_t bytes = piece_bytes(stream, runs, kinds, at);
    if (to_device) {
      const CUresult result = cuda.cuMemcpyHtoDAsync_v2(memory, host, bytes, stream.stream);
      if (!is_success("cuMemcpyHtoDAsync", result, why)) return false;
    }
    if (!launch_piece(stream, runs, kinds, to_device, &at, &bytes, why)) return false;
    if (!to_device) {
      const CUresult result = cuda.cuMemcpyDtoHAsync_v2(host, memory, bytes, stream.stream);
      if (!is_success("cuMemcpyDtoHAsync", result, why)) return false;
    }
    host += bytes;
  }
  return true;
}

}  // namespace

bool begin_packed(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count,
                  bool to_device, size_t* packed, char* why) {
  *packed = 0;
  const Group group = find_group(runs, count, to_device);
  const bool pays = group.rows >= enough_rows || group.copies >= enough_copies;
  if (!pays || !are_kernels_usable() || !find_scratch(stream, group.bytes) ||
      !load(*stream, Image::copy, why)) {
    return true;
  }
  *packed = group.kinds;
  return copy_all(*stream, runs, group.kinds, to_device, why);
}

}  // namespace sluice::cuda
