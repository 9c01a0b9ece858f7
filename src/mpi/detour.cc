// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/detour.h"

#include <dlfcn.h>

#include <algorithm>
#include <new>

namespace sluice {
namespace {

bool is_on_device(const Side& side) { return side.type && !side.place.is_host(); }

// The lowest and the highest offset of a side's elements, in extents.
void find_range(const Side& side, ptrdiff_t* first, ptrdiff_t* last) {
  ptrdiff_t before = 0;
  bool any = false;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    const auto elements = static_cast<ptrdiff_t>(side.elements(i));
    const ptrdiff_t start = side.displacements ? side.displacements[i] : before;
    before += elements;
    if (elements == 0) continue;
    *first = any ? std::min(*first, start) : start;
    *last = any ? std::max(*last, start + elements - 1) : start + elements - 1;
    any = true;
  }
}

}  // namespace

bool is_mpi_cuda_aware() {
  static const bool is_aware = [] {
    auto* const query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return query && query() == 1;
  }();
  return is_aware;
}

// Makes the image's range include a side.
Status Detour::cover(const Side& side, Image* image) {
  MPI_Count start = 0, length = 0;
  if (real().Type_get_true_extent_x(side.type->handle, &start, &length)) {
    return {Code::internal, "MPI does not tell a datatype's extent"};
  }
  ptrdiff_t first = 0, last = 0;
  find_range(side, &first, &last);
  const ptrdiff_t extent = side.type->extent;
  const ptrdiff_t at = offset_by(side.buffer, 0) - offset_by(image->buffer, 0);
  const auto low = at + static_cast<ptrdiff_t>(start) + std::min(first * extent, last * extent);
  const auto high =
      at + static_cast<ptrdiff_t>(start + length) + std::max(first * extent, last * extent);
  const bool is_new = image->low == image->high;
  image->low = is_new ? low : std::min(image->low, low);
  image->high = is_new ? high : std::max(image->high, high);
  return {};
}

Status Detour::make(Image* image) {
  const auto bytes = static_cast<size_t>(image->high - image->low);
  image->memory.reset(new (std::nothrow) std::byte[bytes]);
  if (!image->memory) {
    return {Code::memory, "no memory for a copy of " + std::to_string(bytes) + " bytes"};
  }
  image->image = offset_by(image->memory.get(), -image->low);
  return {};
}

// Moves a side's data from the device to its image (pack), or back.
Status Detour::move(const Side& side, const Image& image, StagedSide::Way way) {
  using Way = StagedSide::Way;
  Side copy = side;
  copy.place = {};
  copy.buffer = offset_by(image.image, offset_by(side.buffer, 0) - offset_by(image.buffer, 0));
  std::byte* const dense = staging_.reserve(side.bytes(), side.place);
  if (!dense) return {Code::memory, "no memory to pack " + std::to_string(side.bytes()) + " bytes"};
  if (side.counts) set_packed_blocks(side, side.type->size, staging_);
  StagedSide first, second;
  Status status = first.begin(Way::pack, way == Way::pack ? side : copy, 1, dense, staging_);
  if (status.ok()) status = first.finish();
  if (status.ok()) {
    status = second.begin(Way::unpack, way == Way::pack ? copy : side, 1, dense, staging_);
  }
  return status.ok() ? second.finish() : status;
}

Status Detour::begin(const Exchange& exchange) {
  exchange_ = exchange;
  const Side &input = exchange_.input, &output = exchange_.output;
  const bool is_apart = input.type && !exchange_.in_place;
  Status status;
  if (is_apart && is_on_device(input)) {
    send_.buffer = input.buffer;
    status = cover(input, &send_);
    if (status.ok()) status = make(&send_);
    if (status.ok()) status = move(input, send_, StagedSide::Way::pack);
  }
  const bool in_output = exchange_.in_place && is_on_device(input);
  if (!status.ok() || (!in_output && !is_on_device(output))) return status;
  receive_.buffer = output.buffer;
  if (is_on_device(output)) status = cover(output, &receive_);
  if (status.ok() && in_output) status = cover(input, &receive_);
  if (status.ok()) status = make(&receive_);
  if (status.ok() && in_output) status = move(input, receive_, StagedSide::Way::pack);
  if (status.ok() && exchange_.filled) status = move(output, receive_, StagedSide::Way::pack);
  return status;
}

Status Detour::end() {
  if (!receive_.image || exchange_.filled || !is_on_device(exchange_.output)) return {};
  return move(exchange_.output, receive_, StagedSide::Way::unpack);
}

}  // namespace sluice
