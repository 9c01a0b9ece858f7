// SPDX-License-Identifier: BSD-3-Clause
#include "transports/arena.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr uint32_t unaborted = 0, writing = 1, written = 2;

}  // namespace

bool Rounds::await_slowly(const std::atomic<uint64_t>& word, uint64_t value, uint32_t rank) {
  patience_->fresh = true;
  for (;;) {
    for (uint32_t i = patience_->looks; i > 0; --i) {
      if (word.load(std::memory_order_acquire) >= value) return true;
      relax();
    }
    if (word.load(std::memory_order_acquire) >= value) return true;
    if (header_->aborted.load(std::memory_order_acquire) != unaborted) return false;
    if (!patience_->wait(rank)) return false;
  }
}

bool Rounds::open_slowly(uint64_t round) {
  uint64_t least = ~uint64_t{0};
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const std::atomic<uint64_t>& taken = area(rank).taken.round;
    if (rank != rank_ && !await_value(taken, round, rank)) return false;
    if (rank != rank_) least = std::min(least, taken.load(std::memory_order_relaxed));
  }
  all_taken_ = least;
  return true;
}

// (Rounds of different algorithms, which calls of different sizes may use, hold what can't be
// compared.)
bool Rounds::disagree_in_round(uint32_t rank, uint64_t k, size_t bytes) {
  const ArenaLine& at = line(rank, k);
  disagreement_ = {rank, at.what, at.bytes, bytes};
  if (at.call_bytes != call_bytes_) disagreement_ = {rank, at.what, at.call_bytes, call_bytes_};
  return false;
}

void Rounds::abort(const std::string& cause) {
  uint32_t state = unaborted;
  if (!header_->aborted.compare_exchange_strong(state, writing)) return;
  const size_t length = std::min(cause.size(), ArenaHeader::longest_cause - 1);
  std::memcpy(header_->cause, cause.data(), length);
  header_->cause[length] = 0;
  header_->aborted.store(written, std::memory_order_release);
}

std::string Rounds::cause() const {
  switch (header_->aborted.load(std::memory_order_acquire)) {
    case unaborted:
      return {};
    case written:
      return header_->cause;
    default:
      return "another rank gave up";
  }
}

}  // namespace sluice
