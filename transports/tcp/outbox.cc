// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/outbox.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "transports/pieces.h"

namespace sluice {
namespace {

constexpr size_t max_runs = 64;    // of memory in one system call
constexpr size_t max_frames = 16;  // likewise
constexpr int max_batches = 8;     // in one flush, so that what arrives gets its turn

// Moves up in the vector what is still to go, now and then.
constexpr size_t max_sent_frames = 256;

}  // namespace

// What one system call sends.
struct Outbox::Batch {
  std::array<iovec, max_runs> runs;
  std::array<std::array<std::byte, Frame::bytes>, max_frames> headers;
  size_t count = 0;
  size_t bytes = 0;

  bool full() const { return count == max_runs; }
  // All but the first `skip` bytes of a run; the rest of `skip` is returned.
  size_t add(const std::byte* data, size_t size, size_t skip) {
    if (skip >= size) return skip - size;
    runs[count++] = {const_cast<std::byte*>(data) + skip, size - skip};
    bytes += size - skip;
    return 0;
  }
};

void Outbox::gather(Batch& batch) const {
  size_t skip = sent_;
  const size_t last = std::min(frames_.size(), first_ + max_frames);
  for (size_t i = first_; i < last && !batch.full(); ++i) {
    const Outgoing& frame = frames_[i];
    if (!frame.bare) {
      std::array<std::byte, Frame::bytes>& header = batch.headers[i - first_];
      frame.frame.encode(header.data());
      skip = batch.add(header.data(), header.size(), skip);
    }
    if (frame.owned != nullptr && !batch.full()) {
      skip = batch.add(frame.owned.get(), frame.frame.length, skip);
    }
    if (frame.operation == nullptr) continue;
    for (const Bytes& piece : frame.operation->pieces) {
      if (batch.full()) return;
      skip = batch.add(piece.data, piece.size, skip);
    }
  }
}

void Outbox::advance(size_t bytes, Flushed& flushed) {
  sent_ += bytes;
  while (!empty() && sent_ >= frames_[first_].bytes()) {
    Outgoing& front = frames_[first_++];
    sent_ -= front.bytes();
    front.owned.reset();
    if (front.operation == nullptr) continue;
    front.operation->next = std::exchange(flushed.done, front.operation);
  }
  if (empty()) {
    clear();
  } else if (first_ >= max_sent_frames) {
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
}

Outbox::Flushed Outbox::flush(int socket) {
  Flushed flushed{Result::blocked};
  for (int i = 0; i < max_batches && !empty(); ++i) {
    Batch batch;
    gather(batch);
    msghdr message{};
    message.msg_iov = batch.runs.data();
    message.msg_iovlen = batch.count;
    ssize_t sent;
    do {
      sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return flushed;
      flushed.result = Result::failed;
      flushed.error = errno;
      return flushed;
    }
    flushed.moved = true;
    advance(static_cast<size_t>(sent), flushed);
    if (static_cast<size_t>(sent) < batch.bytes) return flushed;
  }
  if (empty()) flushed.result = Result::drained;
  return flushed;
}

Outbox::GivenUp Outbox::give_up(const TeamId& team, std::optional<uint32_t> call) {
  GivenUp given;
  size_t kept = first_;
  for (size_t i = first_; i < frames_.size(); ++i) {
    Outgoing& each = frames_[i];
    Operation* const send = each.operation;
    const bool gives_up =
        send != nullptr && each.frame.team == team && (!call || *call == send->tag.call);
    if (gives_up) {
      send->next = std::exchange(given.sends, send);
      each.operation = nullptr;
      if (i > first_ || sent_ == 0) {
        given.charge += each.frame.charged ? each.bytes() : 0;
        given.credit += each.frame.credit;
        continue;
      }
      each.owned.reset(new (std::nothrow) std::byte[each.frame.length]);
      given.torn = each.owned == nullptr;
      if (!given.torn) sluice::gather(each.owned.get(), send->pieces, 0, send->bytes);
    }
    if (kept != i) frames_[kept] = std::move(each);
    ++kept;
  }
  frames_.resize(kept);
  if (empty()) clear();
  return given;
}

void Outbox::clear() {
  frames_.clear();
  first_ = 0;
  sent_ = 0;
}

}  // namespace sluice
