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

// Whether a kernel may move these: they are short, and none is written over another.
bool is_packable(const SluiceCudaRuns& runs, bool to_device) {
  const auto bytes = static_cast<ptrdiff_t>(runs.bytes);
  const bool overlaps = runs.device_stride < bytes && runs.device_stride > -bytes;
  return runs.bytes > 0 && runs.bytes < short_run && (runs.count == 1 || !(to_device && overlaps));
}

// The first kinds of runs that together are one piece of host memory, without gaps: either each
// kind is one, and they follow one another; or they are as many each, and their first runs follow
// one another, then their second runs, and so on, as the members of structures in an array.
struct Group {
  size_t kinds = 0, bytes = 0;
  size_t rows = 0;      // of the kind with most
  size_t copies = 0;    // that the driver would make
  size_t distance = 0;  // of structures: on the host, from one to the next

  void add(const SluiceCudaRuns& runs) {
    const bool is_one = runs.device_stride >= static_cast<ptrdiff_t>(runs.bytes);
    ++kinds;
    bytes += runs.count * runs.bytes;
    rows = std::max(rows, runs.count);
    copies += is_one ? 1 : runs.count;
  }
  bool pays() const { return rows >= enough_rows || copies >= enough_copies; }
};

Group find_series(const SluiceCudaRuns* runs, size_t count, bool to_device) {
  Group group;
  const char* const host = static_cast<const char*>(runs->host);
  for (size_t i = 0; i < count && is_packable(runs[i], to_device); ++i) {
    const bool has_gaps = runs[i].count > 1 && runs[i].host_stride != runs[i].bytes;
    if (has_gaps || runs[i].host != host + group.bytes) break;
    group.add(runs[i]);
  }
  return group;
}

Group find_structures(const SluiceCudaRuns* runs, size_t count, bool to_device) {
  Group group;
  const char* const host = static_cast<const char*>(runs->host);
  group.distance = runs->host_stride;
  size_t in_one = 0;  // bytes
  for (size_t i = 0; i < count && in_one < group.distance; ++i) {
    const SluiceCudaRuns& each = runs[i];
    if (each.count != runs->count || each.host_stride != group.distance) return {};
    if (each.host != host + in_one || !is_packable(each, to_device)) return {};
    group.add(each);
    in_one += each.bytes;
  }
  return in_one == group.distance ? group : Group{};
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

  // Rows on the device, and where they lie in scratch, at what distances.
  bool add(const SluiceCudaRuns& rows, CUdeviceptr dense, size_t distance) {
    if (rows.count >= least_rows) return launch_rows(rows, dense, distance);
    auto device = address_of(rows.device);
    for (size_t i = 0; i < rows.count; ++i) {
      if (!add_block(device, dense, rows.bytes)) return false;
      device += static_cast<CUdeviceptr>(rows.device_stride);
      dense += distance;
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
  bool launch_rows(const SluiceCudaRuns& rows, CUdeviceptr dense, size_t distance) {
    const CUdeviceptr device = address_of(rows.device);
    const auto stride = static_cast<long long>(rows.device_stride);
    const auto dense_stride = static_cast<long long>(distance);
    CopyRows call{};
    call.from = to_device_ ? dense : device;
    call.to = to_device_ ? device : dense;
    call.from_stride = to_device_ ? dense_stride : stride;
    call.to_stride = to_device_ ? stride : dense_stride;
    call.unit = unit_of(device | dense | distance | rows.bytes |
                        static_cast<unsigned long long>(rows.device_stride));
    call.units_a_row = static_cast<unsigned>(rows.bytes) / call.unit;
    call.units = static_cast<unsigned>(rows.count) * call.units_a_row;
    return launch(stream_, rows_kernel, &call, call.units, why_);
  }

  const SluiceCudaStream& stream_;
  const bool to_device_;
  char* const why_;
  CopyBlocks blocks_{};
};

// So many of the runs, from one on.
SluiceCudaRuns part_of(const SluiceCudaRuns& runs, size_t first, size_t count) {
  SluiceCudaRuns part = runs;
  part.device = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(runs.device) +
                                        first * static_cast<uintptr_t>(runs.device_stride));
  part.count = count;
  return part;
}

// From the device: launches, then a copy of what is packed. To it: the copy first.
template <typename Launch>
bool copy_piece(const SluiceCudaStream& stream, char* host, size_t bytes, bool to_device, char* why,
                Launch launch_all) {
  const Driver& cuda = driver();
  const CUdeviceptr memory = address_of(stream.scratch);
  Launches launches(stream, to_device, why);
  if (to_device) {
    const CUresult result = cuda.cuMemcpyHtoDAsync_v2(memory, host, bytes, stream.stream);
    return is_success("cuMemcpyHtoDAsync", result, why) && launch_all(&launches) &&
           launches.flush();
  }
  if (!launch_all(&launches) || !launches.flush()) return false;
  const CUresult result = cuda.cuMemcpyDtoHAsync_v2(host, memory, bytes, stream.stream);
  return is_success("cuMemcpyDtoHAsync", result, why);
}

bool copy_structures(const SluiceCudaStream& stream, const SluiceCudaRuns* runs, const Group& group,
                     bool to_device, char* why) {
  const size_t most = stream.scratch_bytes / group.distance;
  auto* host = static_cast<char*>(runs->host);
  for (size_t first = 0; first < group.rows; first += most) {
    const size_t rows = std::min(group.rows - first, most), bytes = rows * group.distance;
    const auto launch_all = [&](Launches* launches) {
      CUdeviceptr at = address_of(stream.scratch);
      for (size_t i = 0; i < group.kinds; at += runs[i++].bytes) {
        if (!launches->add(part_of(runs[i], first, rows), at, group.distance)) return false;
      }
      return true;
    };
    if (!copy_piece(stream, host, bytes, to_device, why, launch_all)) return false;
    host += bytes;
  }
  return true;
}

// A place among runs.
struct Position {
  size_t kind = 0, row = 0;
};

// Calls `use` for the parts of what scratch holds, from the position on, and moves that on. The
// bytes of all; 0: `use` said false.
template <typename Use>
size_t walk(const SluiceCudaRuns* runs, size_t kinds, size_t most, Position* at, Use use) {
  size_t bytes = 0;
  while (at->kind < kinds) {
    const SluiceCudaRuns& kind = runs[at->kind];
    const size_t count = std::min(kind.count - at->row, (most - bytes) / kind.bytes);
    if (count == 0) break;
    if (!use(part_of(kind, at->row, count), bytes)) return 0;
    bytes += count * kind.bytes;
    at->row += count;
    if (at->row == kind.count) *at = {at->kind + 1, 0};
  }
  return bytes;
}

bool copy_series(const SluiceCudaStream& stream, const SluiceCudaRuns* runs, const Group& group,
                 bool to_device, char* why) {
  const size_t most = stream.scratch_bytes;
  auto* host = static_cast<char*>(runs->host);
  for (Position at; at.kind < group.kinds;) {
    Position next = at;
    const auto skip = [](const SluiceCudaRuns&, size_t) { return true; };
    const size_t bytes = walk(runs, group.kinds, most, &next, skip);
    const auto launch_all = [&](Launches* launches) {
      const auto use = [&](const SluiceCudaRuns& part, size_t offset) {
        return launches->add(part, address_of(stream.scratch) + offset, part.bytes);
      };
      return walk(runs, group.kinds, most, &at, use) > 0;
    };
    if (!copy_piece(stream, host, bytes, to_device, why, launch_all)) return false;
    host += bytes;
  }
  return true;
}

}  // namespace

bool begin_packed(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count,
                  bool to_device, size_t* packed, char* why) {
  *packed = 0;
  Group group = find_series(runs, count, to_device);
  if (!group.pays()) group = find_structures(runs, count, to_device);
  if (!group.pays() || !are_kernels_usable() || !find_scratch(stream, group.bytes) ||
      !load(*stream, Image::copy, why)) {
    return true;
  }
  *packed = group.kinds;
  return group.distance > 0 ? copy_structures(*stream, runs, group, to_device, why)
                            : copy_series(*stream, runs, group, to_device, why);
}

}  // namespace sluice::cuda
