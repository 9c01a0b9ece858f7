// SPDX-License-Identifier: BSD-3-Clause
#include "transports/peer_memory.h"

namespace sluice {

bool AddressedMemory::lend(const Operation& send, Bytes, LentMessage* lent) {
  if (send.bytes < least() || send.pieces.size() > most_regions) return false;
  for (const Bytes& piece : send.pieces) {
    if (piece.size > 0)
      lent->regions.push_back({reinterpret_cast<uintptr_t>(piece.data), piece.size});
  }
  return true;
}

PeerMemory::Get AddressedMemory::get(const LentMessage& lent, Operation* receive, Getter*) {
  const auto copy = [&](const Region& from, const Bytes& to) { return read(from, to.data); };
  if (lent.carrier != 0 || !visit_stretches(lent.regions, receive->pieces, copy)) {
    return Get::refused;
  }
  // The word is read after the message. (The thread sanitizer knows no other fences.)
  std::atomic<uint64_t> fence{0};
  fence.store(1, std::memory_order_seq_cst);
  (void)fence.load(std::memory_order_seq_cst);
  uint64_t now = 0;
  const bool is_lent = read({lent.word, sizeof(now)}, reinterpret_cast<std::byte*>(&now));
  return is_lent && now == lent.value ? Get::done : Get::refused;
}

}  // namespace sluice
