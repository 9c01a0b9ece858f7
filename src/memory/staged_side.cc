// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/staged_side.h"

#include <algorithm>

#include "src/base/copy.h"

namespace sluice {

Status describe_unknown(const Side& side) {
  Status why;
  (void)find_place(data_of(side), &why);
  return why.ok() ? Status{Code::unavailable, "can't tell where a buffer is"} : why;
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
  if (side.place.device == DevicePlace::unknown) return describe_unknown(side);
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
  std::byte* const user = offset_by(side_->buffer, side_->displacement(block, before));
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

}  // namespace sluice
