// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/ring.h"

#include <algorithm>

#include "src/base/copy.h"

namespace sluice {

// The other side's count is between what this side saw last and what it has published, but for the
// lead of the writer.
template <bool writes>
void RingSide<writes>::refresh() {
  constexpr uint64_t others_lead = Ring::capacity - lead;
  const uint64_t count = (writes ? ring_.taken : ring_.written).load();
  corrupt_ |= count < seen_ || count > published_ + others_lead;
  if (!corrupt_) seen_ = count;
}

template <bool writes>
void RingSide<writes>::publish() {
  if (published_ != moved_) (writes ? ring_.written : ring_.taken).store(published_ = moved_);
}

template <bool writes>
size_t RingSide<writes>::move(std::span<const iovec> runs) {
  const uint64_t before = moved_;
  for (const iovec& run : runs) {
    if (!move(static_cast<std::byte*>(run.iov_base), run.iov_len)) break;
  }
  publish();
  return moved_ - before;
}

// False if not all could be moved.
template <bool writes>
bool RingSide<writes>::move(std::byte* memory, size_t left) {
  while (left > 0) {
    if (movable() < left) refresh();
    const size_t at = moved_ % Ring::capacity;
    const size_t bytes =
        std::min({left, corrupt_ ? 0 : movable(), Ring::capacity - at, Ring::stride});
    if (bytes == 0) return false;
    copy_bytes(writes ? ring_.data + at : memory, writes ? memory : ring_.data + at, bytes);
    moved_ += bytes;
    memory += bytes;
    left -= bytes;
    if (moved_ - published_ >= Ring::stride) publish();
  }
  return true;
}

template <bool writes>
bool RingSide<writes>::sleeps() {
  flag().store(1);
  refresh();
  return !corrupt_ && movable() == 0;
}

template class RingSide<true>;
template class RingSide<false>;

}  // namespace sluice
