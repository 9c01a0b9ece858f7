// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/placement.h"

#include <algorithm>
#include <limits>
#include <new>

namespace sluice {
namespace {

constexpr size_t alignment = 64;
constexpr size_t kept = 256 << 10;  // by each communicator, of which programs make thousands

// Where a block begins, in bytes from the side's buffer.
ptrdiff_t displacement(const Side& side, uint32_t block, size_t elements_before) {
  const auto extents =
      side.displacements ? side.displacements[block] : static_cast<ptrdiff_t>(elements_before);
  return extents * side.type->extent;
}

// Whether each block is dense where it lies. Views count in elements: where these are what is
// reduced, blocks must also lie whole elements apart.
bool is_dense(const Side& side, bool reduces) {
  if (side.type->is_dense(2)) return true;
  if (reduces && side.blocks > 1) return false;
  if (!side.counts) return side.type->is_dense(side.count);
  return std::all_of(side.counts, side.counts + side.blocks, [&](int count) {
    return count == 0 || side.type->is_dense(static_cast<size_t>(count));
  });
}

}  // namespace

void Staging::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(alignment));
}

std::byte* Staging::reserve(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes > bytes_) {
    data_.reset();
    bytes_ = 0;
    void* data = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    if (!data) return nullptr;
    data_.reset(static_cast<std::byte*>(data));
    bytes_ = bytes;
  }
  return data_.get();
}

void Staging::trim() {
  if (bytes_ <= kept) return;
  data_.reset();
  bytes_ = 0;
}

Status Placement::begin() try {
  Call& call = exchange_.call;
  if (exchange_.output.type) {
    output_is_apart_ = !is_dense(exchange_.output, call.reduction.kernel);
    Status status =
        place(exchange_.output, output_is_apart_, exchange_.filled, output_, &call.output);
    if (!status.ok()) return status;
  }
  if (!exchange_.input.type) return {};
  const bool apart = exchange_.set_aside || !is_dense(exchange_.input, call.reduction.kernel);
  return place(exchange_.input, apart, apart, input_, &call.input);
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the places of " + std::to_string(exchange_.output.blocks) +
                            " ranks' data"};
}

Status Placement::end() {
  Status status;
  if (output_is_apart_ && !exchange_.filled) {
    status = copy(exchange_.output, exchange_.call.output, false);
  }
  input_.trim();
  output_.trim();
  return status;
}

Status Placement::place(const Side& side, bool apart, bool fill, Staging& staging, View* view) {
  if (!apart) {
    place_directly(side, staging, view);
    return {};
  }
  Status status = place_apart(side, staging, view);
  return status.ok() && fill ? copy(side, *view, true) : status;
}

void Placement::place_directly(const Side& side, Staging& staging, View* view) const {
  const size_t units = scale(side);
  view->base = offset_by(side.buffer, side.type->start);
  view->count = side.count * units;
  const bool adjacent = side.blocks == 1 || side.type->is_dense(2);
  if (!side.counts && adjacent) return;
  // Offsets count from the lowest block. (Where a block is empty its displacement may be anything.)
  ptrdiff_t lowest = std::numeric_limits<ptrdiff_t>::max();
  size_t before = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    if (side.elements(i) > 0) lowest = std::min(lowest, displacement(side, i, before));
    before += side.elements(i);
  }
  if (before == 0) lowest = 0;
  view->base = offset_by(view->base, lowest);
  staging.counts.resize(side.blocks);
  staging.offsets.resize(side.blocks);
  before = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    const ptrdiff_t from_lowest = displacement(side, i, before) - lowest;
    before += side.elements(i);
    staging.counts[i] = side.elements(i) * units;
    staging.offsets[i] =
        staging.counts[i] > 0 ? static_cast<size_t>(from_lowest) / exchange_.call.element : 0;
  }
  view->counts = staging.counts;
  view->offsets = staging.offsets;
}

Status Placement::place_apart(const Side& side, Staging& staging, View* view) const {
  const size_t units = scale(side);
  view->count = side.count * units;
  view->base = staging.reserve(side.bytes());
  if (!view->base) {
    return {Code::memory, "no memory to pack " + std::to_string(side.bytes()) + " bytes"};
  }
  if (!side.counts) return {};
  staging.counts.resize(side.blocks);
  staging.offsets.resize(side.blocks);
  size_t offset = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    staging.counts[i] = side.elements(i) * units;
    staging.offsets[i] = offset;
    offset += staging.counts[i];
  }
  view->counts = staging.counts;
  view->offsets = staging.offsets;
  return {};
}

// Between the program's memory and staging, block by block.
Status Placement::copy(const Side& side, const View& view, bool packing) const {
  std::byte* dense = view.base;
  size_t before = 0;
  Status status;
  for (uint32_t i = 0; i < side.blocks && status.ok(); ++i) {
    const size_t n = side.elements(i);
    std::byte* const user = offset_by(side.buffer, displacement(side, i, before));
    status = packing ? pack(*side.type, user, n, dense, comm_)
                     : unpack(*side.type, dense, n, user, comm_);
    dense += n * side.type->size;
    before += n;
  }
  return status;
}

}  // namespace sluice
