// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/placement.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "src/base/copy.h"

namespace sluice {
namespace {

constexpr size_t alignment = 64;
constexpr size_t kept = 256 << 10;  // bytes a communicator keeps; programs make thousands

// Larger staging memory, shared by the process's communicators between their calls. The kernel
// would have to zero new memory page by page, which takes longer than the call.
class Spares {
 public:
  // Memory of at least so many bytes, and its size; nullptr if there is none.
  std::pair<std::byte*, size_t> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& spare : spares_) {
      if (spare.second >= bytes) return std::exchange(spare, {});
    }
    return {};
  }
  // Keeps memory. Returns what the caller must free: nullptr, the same memory, or smaller memory
  // that it replaces.
  std::byte* give(std::byte* data, size_t bytes) {
    if (bytes > largest) return data;
    const std::lock_guard lock(mutex_);
    auto& least =
        *std::ranges::min_element(spares_, {}, [](const auto& each) { return each.second; });
    if (least.second >= bytes) return data;
    return std::exchange(least, {data, bytes}).first;
  }

 private:
  static constexpr size_t largest = size_t{16} << 20;

  std::mutex mutex_;
  std::array<std::pair<std::byte*, size_t>, 2> spares_{};  // one for each side of a call
};
constinit Spares spares;

// The start of a block, in bytes from the side's buffer.
ptrdiff_t displacement(const Side& side, uint32_t block, size_t elements_before) {
  const auto extents =
      side.displacements ? side.displacements[block] : static_cast<ptrdiff_t>(elements_before);
  return extents * side.type->extent;
}

bool is_on_host(const Side& side) { return side.place.is_host(); }

// Whether each block is dense in the program's memory, and the processor can touch it. Views count
// in engine elements: in a reduction, blocks must also lie a whole number of elements apart.
bool is_dense(const Side& side, bool reduces) {
  if (!is_on_host(side)) return false;
  if (side.type->is_dense(2)) return true;
  if (reduces && side.blocks > 1) return false;
  if (!side.counts) return side.type->is_dense(side.count);
  for (uint32_t i = 0; i < side.blocks; ++i) {
    if (side.elements(i) > 0 && !side.type->is_dense(side.elements(i))) return false;
  }
  return true;
}

// Whether blocks are dense and consecutive; true for a side that does not exist.
bool is_adjacent(const Side& side) {
  return !side.type || (is_on_host(side) && !side.counts && side.type->is_dense(2));
}

// Why nobody knows where a side is.
Status describe_unknown(const Side& side) {
  Status why;
  (void)find_place(offset_by(side.buffer, side.type->start), &why);
  return why.ok() ? Status{Code::unavailable, "can't tell where a buffer is"} : why;
}

}  // namespace

void Staging::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(alignment));
}

std::byte* Staging::reserve(size_t bytes, const DevicePlace& place) {
  if (place.is_host()) return reserve(bytes);
  unpin();
  pinned_ = reserve_pinned(place, bytes);
  return pinned_ ? pinned_ : reserve(bytes);
}

std::byte* Staging::reserve(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= bytes_) return data_.get();
  data_.reset();
  bytes_ = 0;
  if (bytes > kept) {
    const auto [spare, size] = spares.take(bytes);
    data_.reset(spare);
    bytes_ = size;
    if (spare) return spare;
  }
  void* data = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  if (!data) return nullptr;
  data_.reset(static_cast<std::byte*>(data));
  bytes_ = bytes;
  return data_.get();
}

void Staging::trim() {
  if (bytes_ <= kept) return;
  data_.reset(spares.give(data_.release(), std::exchange(bytes_, 0)));
  data_.reset();
}

Status StagedSide::begin(Way way, const Side& side, size_t element, std::byte* dense,
                         Staging& staging) {
  way_ = way;
  side_ = &side;
  element_ = element;
  dense_ = dense;
  staging_ = &staging;
  bytes_ = side.bytes();
  grain_bytes_ = side.place.is_host() ? host_grain : device_grain(bytes_);
  const size_t grains = (bytes_ + grain_bytes_ - 1) / grain_bytes_;
  staging.left.assign(grains, static_cast<uint32_t>(grain_bytes_));
  if (grains > 0) {
    staging.left.back() = static_cast<uint32_t>(bytes_ - (grains - 1) * grain_bytes_);
  }
  left_ = staging.left.data();
  if (side.place.is_host() || bytes_ == 0) return {};
  staging.tickets.assign(grains, 0);
  tickets_ = staging.tickets.data();
  return copier_.open(
      side.place, way == Way::pack ? DeviceCopier::Way::from_device : DeviceCopier::Way::to_device);
}

// Each copy has a fixed cost, so that long messages are copied in longer pieces.
size_t StagedSide::device_grain(size_t bytes) {
  constexpr size_t least = size_t{256} << 10, most = size_t{4} << 20, pieces = 32;
  return std::clamp(bytes / pieces / least * least, least, most);
}

void StagedSide::move(size_t offset, size_t bytes) {
  const size_t end = offset + bytes;
  if (bytes > 0 && way_ == Way::pack && copier_.is_open()) {
    return move_from_device(offset / grain_bytes_, (end - 1) / grain_bytes_ + 1);
  }
  for (size_t grain = offset / grain_bytes_; offset < end; ++grain) {
    const size_t next = std::min((grain + 1) * grain_bytes_, end);
    uint32_t& left = left_[grain];
    const bool now = way_ == Way::pack ? left > 0 : left == next - offset;
    left = way_ == Way::pack ? 0 : left - static_cast<uint32_t>(next - offset);
    if (now) move_grain(grain);
    offset = next;
  }
}

// Returns when grains [first, end) are here.
void StagedSide::move_from_device(size_t first, size_t end) {
  uint32_t last = 0;
  for (size_t grain = first; grain < end + ahead && grain * grain_bytes_ < bytes_; ++grain) {
    if (left_[grain] > 0) {
      left_[grain] = 0;
      move_grain(grain);
      tickets_[grain] = copier_.ticket();
    }
    if (grain < end) last = std::max(last, tickets_[grain]);
  }
  copier_.wait(last);
}

Status StagedSide::finish() {
  for (size_t grain = 0; grain * grain_bytes_ < bytes_; ++grain) {
    if (left_[grain] > 0) move_grain(grain);
    left_[grain] = 0;
  }
  stop();
  return copier_.failure();
}

void StagedSide::stop_copies() {
  copier_.close();
  if (copier_.is_abandoned()) staging_->abandon();
}

void StagedSide::move_grain(size_t grain) {
  const size_t begin = grain * grain_bytes_, end = std::min(begin + grain_bytes_, bytes_);
  if (!side_->counts) {
    move_within(0, 0, begin, end);
    return copier_.begin();
  }
  const auto& offsets = staging_->offsets;
  auto block = static_cast<size_t>(
      std::upper_bound(offsets.begin(), offsets.end(), begin / element_) - offsets.begin() - 1);
  for (; block < offsets.size() && offsets[block] * element_ < end; ++block) {
    const size_t first = offsets[block] * element_;
    const size_t last = first + staging_->counts[block] * element_;
    move_within(static_cast<uint32_t>(block), first, std::max(begin, first), std::min(end, last));
  }
  copier_.begin();
}

// Moves bytes [begin, end) of the packed side, all in the block that begins at `block_begin`.
void StagedSide::move_within(uint32_t block, size_t block_begin, size_t begin, size_t end) {
  if (begin >= end) return;
  const ElementType& type = *side_->type;
  const size_t before = block_begin / type.size;
  std::byte* const user = offset_by(side_->buffer, displacement(*side_, block, before));
  std::byte* const dense = dense_ + begin;
  const size_t offset = begin - block_begin, size = end - begin;
  if (type.is_dense(2)) {
    move_run(offset_by(user, type.start + static_cast<ptrdiff_t>(offset)), dense, size);
  } else if (copier_.is_open()) {
    type.layout->move(copier_, user, type.extent, offset, size, dense);
  } else if (way_ == Way::pack) {
    type.layout->pack(user, type.extent, offset, size, dense);
  } else {
    type.layout->unpack(user, type.extent, offset, size, dense);
  }
}

void StagedSide::move_run(std::byte* user, std::byte* dense, size_t bytes) {
  if (copier_.is_open()) {
    copier_.copy(user, dense, bytes);
  } else if (way_ == Way::pack) {
    copy_bytes(dense, user, bytes);
  } else {
    copy_bytes(user, dense, bytes);
  }
}

// (Copies must have ended before their memory is used by others.)
Placement::~Placement() {
  staged_input_.stop();
  staged_output_.stop();
  input_.unpin();
  output_.unpin();
}

Status Placement::begin() try {
  if (!exchange_.set_aside && is_adjacent(exchange_.output) && is_adjacent(exchange_.input)) {
    place_adjacent(exchange_.output, &exchange_.call.output);
    place_adjacent(exchange_.input, &exchange_.call.input);
    return {};
  }
  for (const Side* side : {&exchange_.output, &exchange_.input}) {
    if (side->place.device == DevicePlace::unknown) return describe_unknown(*side);
  }
  Status status = exchange_.output.type ? begin_output() : Status();
  return status.ok() && exchange_.input.type ? begin_input() : status;
} catch (const std::bad_alloc&) {
  return {Code::memory, "no memory for the places of " + std::to_string(exchange_.output.blocks) +
                            " ranks' data"};
}

Status Placement::begin_output() {
  const Side& side = exchange_.output;
  View& view = exchange_.call.output;
  if (is_dense(side, exchange_.call.reduction.kernel)) {
    place_in_buffer(side, output_, &view);
    return {};
  }
  if (Status status = place_apart(side, output_, &view); !status.ok()) return status;
  const auto way = exchange_.filled ? StagedSide::Way::pack : StagedSide::Way::unpack;
  (exchange_.filled ? view.source : view.sink) = &staged_output_;
  return staged_output_.begin(way, side, exchange_.call.element, view.base, output_);
}

Status Placement::begin_input() {
  const Side& side = exchange_.input;
  View& view = exchange_.call.input;
  if (!exchange_.set_aside && is_dense(side, exchange_.call.reduction.kernel)) {
    place_in_buffer(side, input_, &view);
    return {};
  }
  if (Status status = place_apart(side, input_, &view); !status.ok()) return status;
  Status status =
      staged_input_.begin(StagedSide::Way::pack, side, exchange_.call.element, view.base, input_);
  if (!status.ok()) return status;
  if (exchange_.set_aside) return staged_input_.finish();
  view.source = &staged_input_;
  return {};
}

Status Placement::end() {
  Status status = exchange_.call.output.sink ? staged_output_.finish() : Status();
  staged_input_.stop();
  input_.trim();
  output_.trim();
  return status.ok() ? staged_input_.failure() : status;
}

void Placement::place_adjacent(const Side& side, View* view) const {
  if (!side.type) return;
  view->base = offset_by(side.buffer, side.type->start);
  view->count = side.count * scale(side);
}

void Placement::place_in_buffer(const Side& side, Staging& staging, View* view) const {
  const size_t units = scale(side);
  place_adjacent(side, view);
  if (is_adjacent(side) || (!side.counts && side.blocks == 1)) return;
  // Offsets count from the lowest block. (The displacement of an empty block may be anything.)
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

void set_packed_blocks(const Side& side, size_t units, Staging& staging) {
  staging.counts.resize(side.blocks);
  staging.offsets.resize(side.blocks);
  size_t offset = 0;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    staging.counts[i] = side.elements(i) * units;
    staging.offsets[i] = offset;
    offset += staging.counts[i];
  }
}

Status Placement::place_apart(const Side& side, Staging& staging, View* view) const {
  const size_t units = scale(side);
  view->count = side.count * units;
  view->base = staging.reserve(side.bytes(), side.place);
  if (!view->base) {
    return {Code::memory, "no memory to pack " + std::to_string(side.bytes()) + " bytes"};
  }
  if (!side.counts) return {};
  set_packed_blocks(side, units, staging);
  view->counts = staging.counts;
  view->offsets = staging.offsets;
  return {};
}

}  // namespace sluice
