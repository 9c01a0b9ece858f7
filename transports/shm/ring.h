// SPDX-License-Identifier: BSD-3-Clause
//
// A ring of bytes in memory that two processes map: one writes, the other reads (L. Lamport,
// "Proving the correctness of multiprocess programs", 1977; as in FastForward and MCRingBuffer,
// each side keeps the value of the other's count that it last saw). Each side keeps its own count
// in private memory: from shared memory it reads only the peer's count, and checks it.
//
// A side that is about to sleep sets its flag (sleeps) and checks the ring once more. A side that
// moves bytes checks the other's flag afterwards (wakes). All these accesses are sequentially
// consistent, so at least one of the two sees the other's (T. Dekker's algorithm).
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// The shared part. All zero: an empty ring.
struct Ring {
  static constexpr size_t capacity = size_t{256} << 10;
  // A side publishes its count every 16 KB, so that both sides copy at the same time.
  static constexpr size_t stride = size_t{16} << 10;

  alignas(64) std::atomic<uint64_t> written;        // bytes so far; only the writer stores it
  alignas(64) std::atomic<uint64_t> taken;          // bytes so far; only the reader stores it
  alignas(64) std::atomic<uint32_t> reader_sleeps;  // set by the sleeper; either side resets it
  alignas(64) std::atomic<uint32_t> writer_sleeps;
  alignas(64) std::byte data[capacity];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// One side of a ring. One thread at a time.
template <bool writes>
class RingSide {
 public:
  explicit RingSide(Ring& ring) : ring_(ring) {}

  // Returns the bytes written: as many as there was room for.
  size_t write(std::span<const iovec> runs) requires writes { return move(runs); }
  // Returns the bytes read: as many as there were.
  size_t read(std::span<const iovec> runs) requires(!writes) { return move(runs); }
  // The other side's count is impossible; nothing can be moved any more.
  bool corrupt() const { return corrupt_; }
  // Whether there is anything to read, or room to write; also if the ring is corrupt.
  bool has_any() {
    if (movable() == 0) refresh();
    return movable() > 0 || corrupt_;
  }

  // True, once, if the other side sleeps. The caller must wake it.
  bool wakes() {
    auto& flag = writes ? ring_.reader_sleeps : ring_.writer_sleeps;
    return flag.load() != 0 && flag.exchange(0) != 0;
  }
  // Announces that this side will sleep until it can move bytes. False if it can.
  bool sleeps();
  void awake() { flag().store(0, std::memory_order_relaxed); }

 private:
  // The reader may take what was written, the writer may be a whole ring ahead of what was taken.
  static constexpr uint64_t lead = writes ? Ring::capacity : 0;

  size_t move(std::span<const iovec> runs);
  bool move(std::byte* memory, size_t left);
  // Bytes that this side can move, by the other's count as last seen.
  size_t movable() const { return seen_ + lead - moved_; }
  void refresh();
  void publish();
  auto& flag() { return writes ? ring_.writer_sleeps : ring_.reader_sleeps; }

  Ring& ring_;
  uint64_t moved_ = 0, published_ = 0;
  uint64_t seen_ = 0;  // the other side's count as last seen
  bool corrupt_ = false;
};
using RingWriter = RingSide<true>;
using RingReader = RingSide<false>;

}  // namespace sluice
