// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/several_buffers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/copy.h"
#include "src/memory/device_stream.h"
#include "src/memory/placement.h"

namespace sluice {
namespace {

constexpr size_t grain_bytes = size_t{64} << 10;  // stays in the second-level cache

}  // namespace

SeveralBuffers::SeveralBuffers(UnplacedCall& unplaced, Staging& memory, CopyWait& wait)
    : unplaced_(unplaced), wait_(wait) {
  buffers_.push_back(std::make_unique<Buffer>(unplaced.output, &memory, wait));
  for (const Side& side : unplaced.others) {
    buffers_.push_back(std::make_unique<Buffer>(side, nullptr, wait));
  }
}

// (After a failure other buffers' copies from the vector may still run.)
SeveralBuffers::~SeveralBuffers() {
  for (const auto& buffer : buffers_) {
    buffer->packed.stop();
    buffer->unpacked.stop();
  }
  if (!failure().ok()) buffers_.front()->staging.abandon();
  for (const auto& buffer : buffers_) buffer->staging.unpin();
}

Status SeveralBuffers::begin(bool is_apart) {
  const size_t element = unplaced_.call.element;
  bytes_ = unplaced_.output.bytes();
  grain_ = std::max(grain_bytes / element, size_t{1}) * element;
  const size_t grains = (bytes_ + grain_ - 1) / grain_;
  gathered_.assign(grains, false);
  awaited_.resize(grains);
  for (size_t grain = 0; grain < grains; ++grain) {
    awaited_[grain] = static_cast<uint32_t>(grain_size(grain));
  }
  const bool are_on_host =
      std::ranges::all_of(buffers_, [](const auto& each) { return each->side.place.is_host(); });
  for (const auto& buffer : buffers_) {
    const bool is_vector = buffer == buffers_.front();
    const bool may_be_direct = !is_vector || (are_on_host && !is_apart);
    if (Status status = place(*buffer, may_be_direct); !status.ok()) return status;
    if (is_vector) vector_ = buffer->dense;
  }
  set_views();
  return {};
}

// A buffer's operand: where it is, if it is dense on the host, else memory for it. (A broadcast has
// one operand, at the root.)
Status SeveralBuffers::place(Buffer& buffer, bool may_be_direct) {
  using Way = StagedSide::Way;
  const Side& side = buffer.side;
  const bool is_vector = &buffer == buffers_.front().get();
  if (side.place.device == DevicePlace::unknown) return describe_unknown(side);
  buffer.is_direct = may_be_direct && side.place.is_host() && has_dense_blocks(side, reduces());
  if (buffer.is_direct) {
    buffer.dense = offset_by(side.buffer, side.type->start);
    return {};
  }
  if (is_vector || reduces()) {
    buffer.dense = buffer.staging.reserve(bytes_, side.place);
    if (!buffer.dense) {
      return {Code::memory, "no memory to pack " + std::to_string(bytes_) + " bytes"};
    }
  }
  Status status;
  if (reduces() || (is_vector && unplaced_.filled)) {
    status =
        buffer.packed.begin(Way::pack, side, unplaced_.call.element, buffer.dense, buffer.staging);
  }
  buffer.is_fed_by_first = !is_vector && is_fed_by_first(side);
  if (!status.ok() || (is_vector && unplaced_.filled) || buffer.is_fed_by_first) return status;
  std::byte* const result = is_vector ? buffer.dense : vector_;
  return buffer.unpacked.begin(Way::unpack, side, unplaced_.call.element, result, buffer.unpacking);
}

// (Memory without a context is for those devices alone that the program allows.)
bool SeveralBuffers::is_fed_by_first(const Side& other) const {
  const Side& first = unplaced_.output;
  const bool is_reached = other.place.device == first.place.device || other.place.context;
  return bytes_ > 0 && first.place.device >= 0 && other.place.device >= 0 && is_reached &&
         has_dense_blocks(first, reduces()) && has_dense_blocks(other, reduces());
}

Status SeveralBuffers::feed_others() {
  const Side& first = unplaced_.output;
  const auto is_fed = [](const auto& buffer) { return buffer->is_fed_by_first; };
  if (std::ranges::none_of(buffers_, is_fed)) return {};
  DeviceStream stream(wait_);
  if (Status status = stream.open(first.place.device); !status.ok()) return status;
  for (const auto& buffer : buffers_) {
    if (!is_fed(buffer)) continue;
    stream.copy(const_cast<std::byte*>(data_of(buffer->side)), data_of(first), bytes_);
  }
  return stream.wait();
}

void SeveralBuffers::set_views() {
  View &input = unplaced_.call.input, &output = unplaced_.call.output;
  output.base = vector_;
  output.count = unplaced_.output.count * units_of(unplaced_.output, unplaced_.call);
  if (reduces()) {
    input.base = output.base;
    input.count = output.count;
    input.source = &operands_;
  } else if (unplaced_.filled) {
    output.source = &operands_;
  }
  if (!unplaced_.filled) output.sink = &results_;
}

void SeveralBuffers::gather(size_t offset, size_t bytes) {
  if (bytes == 0) return;
  for (size_t grain = offset / grain_; grain * grain_ < offset + bytes; ++grain) {
    if (!gathered_[grain]) gather_grain(grain);
    gathered_[grain] = true;
  }
}

// (The vector is the first operand.)
void SeveralBuffers::gather_grain(size_t grain) {
  const size_t begin = grain * grain_, size = grain_size(grain);
  const Reduction& reduction = unplaced_.call.reduction;
  for (const auto& buffer : buffers_) {
    if (!buffer->is_direct) buffer->packed.move(begin, size);
    if (!reduces()) return;
    if (buffer == buffers_.front()) continue;
    std::byte* const sum = vector_ + begin;
    reduction.kernel(sum, buffer->dense + begin, sum, size / unplaced_.call.element,
                     reduction.context);
  }
}

Status SeveralBuffers::gather() {
  gather(0, bytes_);
  return failure();
}

void SeveralBuffers::scatter(size_t offset, size_t bytes) {
  const size_t end = offset + bytes;
  while (offset < end) {
    const size_t grain = offset / grain_, next = std::min((grain + 1) * grain_, end);
    awaited_[grain] -= static_cast<uint32_t>(next - offset);
    if (awaited_[grain] == 0) scatter_grain(grain);
    offset = next;
  }
}

void SeveralBuffers::scatter_grain(size_t grain) {
  const size_t begin = grain * grain_, size = grain_size(grain);
  for (const auto& buffer : buffers_) {
    const bool is_vector = buffer == buffers_.front();
    if (is_vector && (buffer->is_direct || unplaced_.filled)) continue;
    if (buffer->is_fed_by_first) continue;
    if (buffer->is_direct) {
      copy_bytes(buffer->dense + begin, vector_ + begin, size);
    } else {
      buffer->unpacked.move(begin, size);
    }
  }
}

Status SeveralBuffers::finish() {
  if (unplaced_.filled) gather(0, bytes_);
  for (size_t grain = 0; grain < awaited_.size(); ++grain) {
    if (std::exchange(awaited_[grain], 0) > 0) scatter_grain(grain);
  }
  for (const auto& buffer : buffers_) {
    buffer->packed.stop();
    buffer->unpacked.stop();
  }
  const Status status = failure();
  return status.ok() ? feed_others() : status;
}

Status SeveralBuffers::failure() const {
  for (const auto& buffer : buffers_) {
    for (const StagedSide* side : {&buffer->packed, &buffer->unpacked}) {
      if (Status status = side->failure(); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace sluice
