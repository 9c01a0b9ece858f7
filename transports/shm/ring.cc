// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/ring.h"

#include <algorithm>

#include "src/base/copy.h"

namespace sluice {
namespace {

// Bytes that one copy can move from position `at` on, at most up to the ring's end.
size_t reach(uint64_t at, size_t left, size_t available) {
  return std::min({left, available, Ring::capacity - at % Ring::capacity, Ring::stride});
}

}  // namespace

void RingWriter::look() {
  const uint64_t taken = ring_.taken.load();
  corrupt_ |= taken < taken_ || taken > published_;
  if (!corrupt_) taken_ = taken;
}

void RingWriter::publish() {
  if (published_ != written_) ring_.written.store(published_ = written_);
}

size_t RingWriter::write(std::span<const iovec> runs) {
  const uint64_t before = written_;
  for (const iovec& run : runs) {
    if (!write(static_cast<const std::byte*>(run.iov_base), run.iov_len)) break;
  }
  publish();
  return written_ - before;
}

// False if there was not room for all.
bool RingWriter::write(const std::byte* from, size_t left) {
  while (left > 0) {
    if (room() < left) look();
    const size_t bytes = reach(written_, left, corrupt_ ? 0 : room());
    if (bytes == 0) return false;
    copy_bytes(ring_.data + written_ % Ring::capacity, from, bytes);
    written_ += bytes;
    from += bytes;
    left -= bytes;
    if (written_ - published_ >= Ring::stride) publish();
  }
  return true;
}

bool RingWriter::sleeps() {
  ring_.writer_sleeps.store(1);
  look();
  return !corrupt_ && room() == 0;
}

void RingReader::look() {
  const uint64_t written = ring_.written.load();
  corrupt_ |= written < written_ || written - published_ > Ring::capacity;
  if (!corrupt_) written_ = written;
}

void RingReader::publish() {
  if (published_ != taken_) ring_.taken.store(published_ = taken_);
}

size_t RingReader::read(std::span<const iovec> runs) {
  const uint64_t before = taken_;
  for (const iovec& run : runs) {
    if (!read(static_cast<std::byte*>(run.iov_base), run.iov_len)) break;
  }
  publish();
  return taken_ - before;
}

// False if there were fewer bytes.
bool RingReader::read(std::byte* to, size_t left) {
  while (left > 0) {
    if (there() < left) look();
    const size_t bytes = reach(taken_, left, corrupt_ ? 0 : there());
    if (bytes == 0) return false;
    copy_bytes(to, ring_.data + taken_ % Ring::capacity, bytes);
    taken_ += bytes;
    to += bytes;
    left -= bytes;
    if (taken_ - published_ >= Ring::stride) publish();
  }
  return true;
}

bool RingReader::sleeps() {
  ring_.reader_sleeps.store(1);
  look();
  return !corrupt_ && there() == 0;
}

}  // namespace sluice
