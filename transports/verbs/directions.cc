// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/directions.h"

#include <algorithm>

#include "src/base/copy.h"

namespace sluice {

void VerbsSends::stage(std::byte* staging, const std::byte* from, size_t bytes) {
  while (bytes > 0) {
    const size_t at = staged_ % ring_;
    const size_t part = std::min(bytes, ring_ - at);
    copy_bytes(staging + at, from, part);
    staged_ += part;
    from += part;
    bytes -= part;
  }
}

uint32_t VerbsSends::make_batch(std::byte* staging, uint64_t peer_ring, size_t most,
                                SluiceVerbsWrite* writes) {
  uint32_t count = 0;
  for (uint64_t at = posted_; at < staged_;) {
    const size_t offset = at % ring_;
    const size_t bytes = std::min({staged_ - at, ring_ - offset, most});
    SluiceVerbsWrite& write = writes[count];
    write = {};
    write.from = staging + offset;
    write.bytes = static_cast<uint32_t>(bytes);
    write.to = peer_ring + offset;
    at += bytes;
    write_ends_[(writes_ + count++) % depth] = at;
  }
  batch_ends_[batches_++ % batch_slots] = posted_ = staged_;
  return count;
}

void VerbsSends::number(SluiceVerbsWrite& write) {
  const uint64_t end = write_ends_[writes_ % depth];
  write.id = writes_++;
  const bool due =
      writes_ - signalled_writes_ >= writes_per_signal || end - signalled_ >= ring_ / 4;
  if (!due && write.signalled == 0) return;
  write.signalled = 1;
  signalled_writes_ = writes_;
  signalled_ = end;
}

bool VerbsSends::complete(uint64_t id) {
  const auto through = static_cast<uint32_t>(id) + 1;
  if (through - completed_writes_ > writes_ - completed_writes_) return false;
  if (through == completed_writes_) return true;
  completed_writes_ = through;
  completed_ = write_ends_[(through - 1) % depth];
  return true;
}

bool VerbsSends::take_credit(uint32_t credit) {
  const uint32_t more = (credit - credited_batches_) & verbs_credit_mask;
  if (more == 0) return true;
  if (more > batches_ - credited_batches_) return false;
  credited_batches_ += more;
  credited_ = batch_ends_[(credited_batches_ - 1) % batch_slots];
  return true;
}

size_t VerbsReceives::read(const std::byte* ring, std::byte* to, size_t bytes) {
  const uint64_t before = read_;
  while (bytes > 0 && readable() > 0) {
    const size_t at = read_ % ring_;
    const size_t part = std::min({bytes, readable(), ring_ - at});
    copy_bytes(to, ring + at, part);
    read_ += part;
    to += part;
    bytes -= part;
  }
  return read_ - before;
}

bool VerbsReceives::take_batch(uint32_t bytes) {
  if (bytes > ring_ - readable() || batches_ - freed_batches_ == verbs_max_batches) return false;
  arrived_ += bytes;
  batch_ends_[batches_++ % batch_slots] = arrived_;
  return true;
}

uint32_t VerbsReceives::tell_credit() {
  told_batches_ = freed_batches_;
  told_ = freed_;
  return freed_batches_ & verbs_credit_mask;
}

void VerbsReceives::free_batches() {
  while (freed_batches_ != batches_ && batch_ends_[freed_batches_ % batch_slots] <= read_) {
    freed_ = batch_ends_[freed_batches_++ % batch_slots];
  }
}

}  // namespace sluice
