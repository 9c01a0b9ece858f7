// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/outbox.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "transports/pieces.h"

namespace sluice {
namespace {

constexpr size_t batch_bytes = 16384;    // headers and small payloads in one write
constexpr size_t small_run = 256;        // up to so many bytes, copying beats another run
constexpr int max_batches = 8;           // in one flush, so that receiving gets its turn
constexpr size_t max_sent_frames = 256;  // sent frames kept before the rest moves to the front

}  // namespace

// The content of one write: runs of memory, and small ones copied together.
class Outbox::Batch {
 public:
  // False if there is no room.
  bool add(const std::byte* data, size_t size) {
    if (size <= small_run) return copy(data, size);
    if (count_ == max_runs) return false;
    runs_[count_++] = {const_cast<std::byte*>(data), size};
    bytes_ += size;
    return true;
  }
  bool add(const Frame& frame, size_t skip) {
    std::array<std::byte, Frame::bytes> header;
    frame.encode(header.data());
    return copy(header.data() + skip, header.size() - skip);
  }
  size_t bytes() const { return bytes_; }

  Conduit::Moved send(Conduit& conduit) const { return conduit.write({runs_.data(), count_}); }

 private:
  bool copy(const std::byte* data, size_t size) {
    std::byte* const to = copied_.data() + used_;
    const bool joins =
        count_ > 0 &&
        static_cast<std::byte*>(runs_[count_ - 1].iov_base) + runs_[count_ - 1].iov_len == to;
    if (size > copied_.size() - used_ || (!joins && count_ == max_runs)) return false;
    std::copy_n(data, size, to);
    used_ += size;
    bytes_ += size;
    if (joins) {
      runs_[count_ - 1].iov_len += size;
    } else {
      runs_[count_++] = {to, size};
    }
    return true;
  }

  std::array<iovec, max_runs> runs_;
  std::array<std::byte, batch_bytes> copied_;
  size_t count_ = 0;
  size_t used_ = 0;   // of copied_
  size_t bytes_ = 0;  // in all
};

// Adds a frame from its byte `skip` on. False if not all of it found room.
bool Outbox::gather(Batch& batch, const Outgoing& frame, size_t skip) {
  const size_t header = frame.header_bytes();
  if (skip < header && !batch.add(frame.frame, skip)) return false;
  skip -= std::min(skip, header);
  if (frame.owned != nullptr) {
    return batch.add(frame.owned.get() + skip, frame.frame.length - skip);
  }
  if (frame.operation == nullptr) return true;
  for (const Bytes& piece : frame.operation->pieces) {
    const size_t skipped = std::min(skip, piece.size);
    skip -= skipped;
    if (skipped < piece.size && !batch.add(piece.data + skipped, piece.size - skipped))
      return false;
  }
  return true;
}

// The conduit has taken so many bytes.
void Outbox::advance(size_t bytes, Flushed& flushed) {
  sent_ += bytes;
  taken_ += bytes;
  while (!all_taken() && sent_ >= frames_[first_].bytes()) {
    Outgoing& front = frames_[first_++];
    sent_ -= front.bytes();
    front.owned.reset();
    leaves_ |= front.last;
    if (front.operation == nullptr) continue;
    if (unsent_ > 0) {
      held_.push_back({front.operation, front.frame.team, taken_ - sent_});
    } else {
      front.operation->next = std::exchange(flushed.done, front.operation);
    }
  }
  if (all_taken()) {
    forget_taken();
  } else if (first_ >= max_sent_frames) {
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
}

// Completes the held sends whose bytes have left. False if the rest goes over another conduit.
bool Outbox::complete_held(const Conduit& conduit, Flushed& flushed) {
  unsent_ = conduit.unsent();
  const uint64_t gone = taken_ - std::min<uint64_t>(unsent_, taken_);
  const auto is_held = [&](const Held& each) { return each.end > gone; };
  const auto rest = std::ranges::find_if(held_, is_held);
  std::for_each(held_.begin(), rest, [&](const Held& each) {
    each.operation->next = std::exchange(flushed.done, each.operation);
  });
  held_.erase(held_.begin(), rest);
  if (!leaves_) return true;
  leaves_ = unsent_ > 0;
  flushed.result = leaves_ ? Result::blocked : Result::shifted;
  return false;
}

// Fills one write: no frame after the last one for this conduit.
void Outbox::fill(Batch& batch) const {
  for (size_t at = first_, skip = sent_; at < frames_.size(); ++at, skip = 0) {
    if (!gather(batch, frames_[at], skip) || frames_[at].last) return;
  }
}

// Has the conduit move what it took earlier. False if the flush is over.
bool Outbox::push_on(Conduit& conduit, Flushed& flushed) {
  const Conduit::Moved moved = conduit.flush();
  flushed.moved = moved.result == Conduit::Moved::Result::some;
  if (!flushed.moved && moved.result != Conduit::Moved::Result::nothing) {
    flushed.result = Result::failed;
    flushed.error = moved.error;
    return false;
  }
  return complete_held(conduit, flushed);
}

Outbox::Flushed Outbox::flush(Conduit& conduit) {
  Flushed flushed{Result::blocked};
  unsent_ = conduit.unsent();
  if ((unsent_ > 0 || leaves_) && !push_on(conduit, flushed)) return flushed;
  for (int i = 0; i < max_batches && !all_taken(); ++i) {
    Batch batch;
    fill(batch);
    const Conduit::Moved sent = batch.send(conduit);
    if (sent.result == Conduit::Moved::Result::nothing) return flushed;
    if (sent.result != Conduit::Moved::Result::some) {
      flushed.result = Result::failed;
      flushed.error = sent.error;
      return flushed;
    }
    flushed.moved = true;
    unsent_ = conduit.unsent();
    advance(sent.bytes, flushed);
    if (!complete_held(conduit, flushed) || sent.bytes < batch.bytes()) return flushed;
  }
  if (empty()) flushed.result = Result::drained;
  return flushed;
}

Outbox::GivenUp Outbox::withdraw(const TeamId& team, std::optional<uint32_t> call) {
  GivenUp given;
  size_t kept = first_;
  for (size_t i = first_; i < frames_.size(); ++i) {
    Outgoing& each = frames_[i];
    Operation* const send = each.operation;
    const bool gives_up =
        send != nullptr && each.frame.team == team && (!call || *call == send->tag.call);
    if (gives_up) each.operation = nullptr;
    if (gives_up && send->note_left()) send->next = std::exchange(given.sends, send);
    if (gives_up && each.owned == nullptr) {
      if (i > first_ || sent_ == 0) {
        given.charge += each.frame.charged ? each.bytes() : 0;
        given.credit += each.frame.credit();
        continue;
      }
      each.owned.reset(new (std::nothrow) std::byte[each.frame.length]);
      torn_ = each.owned == nullptr;
      if (!torn_) sluice::gather(each.owned.get(), send->pieces, 0, send->bytes);
    }
    if (kept != i) frames_[kept] = std::move(each);
    ++kept;
  }
  frames_.resize(kept);
  if (all_taken()) forget_taken();
  withdraw_held(team, call, given);
  return given;
}

// What the conduit holds it sends in any case: it has copied it.
void Outbox::withdraw_held(const TeamId& team, std::optional<uint32_t> call, GivenUp& given) {
  std::erase_if(held_, [&](const Held& each) {
    const bool gives_up = each.team == team && (!call || *call == each.operation->tag.call);
    if (gives_up && each.operation->note_left()) {
      each.operation->next = std::exchange(given.sends, each.operation);
    }
    return gives_up;
  });
}

Operation* Outbox::go_on() {
  Flushed flushed{Result::drained};
  for (const Held& each : held_) each.operation->next = std::exchange(flushed.done, each.operation);
  held_.clear();
  unsent_ = 0;
  leaves_ = false;
  const auto first = frames_.begin() + static_cast<ptrdiff_t>(first_);
  if (first != frames_.end()) first->last = false;
  const auto begun = first + (sent_ > 0 && first != frames_.end() ? 1 : 0);
  frames_.erase(std::remove_if(begun, frames_.end(),
                               [](const Outgoing& each) { return each.frame.is_of_upgrades(); }),
                frames_.end());
  if (all_taken()) forget_taken();
  return flushed.done;
}

void Outbox::push(const Frame& frame, std::span<const std::byte> payload, bool last,
                  Operation* part_of) {
  Outgoing out{frame, part_of};
  out.frame.length = static_cast<uint32_t>(payload.size());
  out.owned = std::make_unique_for_overwrite<std::byte[]>(payload.size());
  std::ranges::copy(payload, out.owned.get());
  out.last = last;
  push(std::move(out));
}

void Outbox::forget_taken() {
  frames_.clear();
  first_ = 0;
  sent_ = 0;
}

void Outbox::clear() {
  forget_taken();
  held_.clear();
  unsent_ = 0;
  leaves_ = false;
}

}  // namespace sluice
