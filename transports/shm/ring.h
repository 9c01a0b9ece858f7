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

// The writing side. One thread at a time.
class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(ring) {}

  // Returns the bytes written: as many as there was room for.
  size_t write(std::span<const iovec> runs);
  // The reader's count is impossible; nothing can be written any more.
  bool corrupt() const { return corrupt_; }

  // True, once, if the reader sleeps. The caller must wake it.
  bool wakes() { return ring_.reader_sleeps.load() != 0 && ring_.reader_sleeps.exchange(0) != 0; }
  // Announces that this side will sleep until there is room. False if there is room.
  bool sleeps();
  void awake() { ring_.writer_sleeps.store(0, std::memory_order_relaxed); }

 private:
  bool write(const std::byte* from, size_t left);
  size_t room() const { return Ring::capacity - (written_ - taken_); }
  void look();
  void publish();

  Ring& ring_;
  uint64_t written_ = 0, published_ = 0;
  uint64_t taken_ = 0;  // the reader's count as last seen
  bool corrupt_ = false;
};

// The reading side. One thread at a time.
class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(ring) {}

  // Returns the bytes read: as many as there were.
  size_t read(std::span<const iovec> runs);
  bool corrupt() const { return corrupt_; }
  // Whether there is anything to read, or the ring is corrupt.
  bool has_any() {
    if (there() == 0) look();
    return there() > 0 || corrupt_;
  }

  // True, once, if the writer sleeps until there is room. The caller must wake it.
  bool wakes() { return ring_.writer_sleeps.load() != 0 && ring_.writer_sleeps.exchange(0) != 0; }
  // Announces that this side will sleep until there are bytes. False if there are some.
  bool sleeps();
  void awake() { ring_.reader_sleeps.store(0, std::memory_order_relaxed); }

 private:
  bool read(std::byte* to, size_t left);
  size_t there() const { return written_ - taken_; }
  void look();
  void publish();

  Ring& ring_;
  uint64_t taken_ = 0, published_ = 0;
  uint64_t written_ = 0;  // the writer's count as last seen
  bool corrupt_ = false;
};

}  // namespace sluice
