// SPDX-License-Identifier: BSD-3-Clause
//
// A ring of bytes in memory that two processes map: one writes, the other reads (L. Lamport,
// "Proving the correctness of multiprocess programs", 1977; each side keeps what it last saw of the
// other's count, as FastForward and MCRingBuffer do). Each side's own count lives in its own
// memory: of the shared one only the peer's count is ever read, and checked.
//
// Who waits says so (sleeps) and looks once more before it goes to sleep; who moves bytes looks
// afterwards whether the other sleeps (wakes). All of it is sequentially consistent, so that one of
// the two sees the other (T. Dekker's rule).
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// What is shared. All zero: an empty ring.
struct Ring {
  static constexpr size_t capacity = size_t{256} << 10;
  // So many bytes are told of at once: the other side moves them while this one goes on.
  static constexpr size_t stride = size_t{16} << 10;

  alignas(64) std::atomic<uint64_t> written;        // bytes so far; the writer's
  alignas(64) std::atomic<uint64_t> taken;          // the reader's
  alignas(64) std::atomic<uint32_t> reader_sleeps;  // set by who sleeps, reset by who wakes it
  alignas(64) std::atomic<uint32_t> writer_sleeps;
  alignas(64) std::byte data[capacity];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The side that writes: one thread at a time.
class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(ring) {}

  // Bytes written, as many as there is room for.
  size_t write(std::span<const iovec> runs);
  // The reader's count makes no sense: nothing can be written any more.
  bool corrupt() const { return corrupt_; }

  // True, once, if the reader sleeps: it is to be woken.
  bool wakes() { return ring_.reader_sleeps.load() != 0 && ring_.reader_sleeps.exchange(0) != 0; }
  // Waits for room. False if there is some.
  bool sleeps();
  void awake() { ring_.writer_sleeps.store(0, std::memory_order_relaxed); }

 private:
  bool write(const std::byte* from, size_t left);
  size_t room() const { return Ring::capacity - (written_ - taken_); }
  void look();
  void tell();

  Ring& ring_;
  uint64_t written_ = 0, told_ = 0;
  uint64_t taken_ = 0;  // as last seen
  bool corrupt_ = false;
};

// The side that reads: one thread at a time.
class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(ring) {}

  // Bytes read, as many as are there.
  size_t read(std::span<const iovec> runs);
  bool corrupt() const { return corrupt_; }

  // True, once, if the writer waits for room.
  bool wakes() { return ring_.writer_sleeps.load() != 0 && ring_.writer_sleeps.exchange(0) != 0; }
  // Waits for bytes. False if there are some.
  bool sleeps();
  void awake() { ring_.reader_sleeps.store(0, std::memory_order_relaxed); }

 private:
  bool read(std::byte* to, size_t left);
  size_t there() const { return written_ - taken_; }
  void look();
  void tell();

  Ring& ring_;
  uint64_t taken_ = 0, told_ = 0;
  uint64_t written_ = 0;  // as last seen
  bool corrupt_ = false;
};

}  // namespace sluice
