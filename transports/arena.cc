// SPDX-License-Identifier: BSD-3-Clause
#include "transports/arena.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "src/base/copy.h"

namespace sluice {
namespace {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr uint32_t most_looked_at = 64;  // ranks: to look at more takes as long as a switch
constexpr uint32_t unaborted = 0, writing = 1, written = 2;
constexpr auto longest_writing = std::chrono::milliseconds(400);

}  // namespace

bool Rounds::await_slowly(const std::atomic<uint64_t>& word, uint64_t value, uint32_t rank) {
  patience_->fresh = true;
  for (;;) {
    if (has_come(word, value, patience_->looks)) return true;
    if (header_->aborted.load(std::memory_order_acquire) != unaborted) return false;
    if (strays() && serve()) {
      patience_->fresh = true;
      continue;
    }
    if (!patience_->wait(rank)) return false;
  }
}

bool Rounds::has_come(const std::atomic<uint64_t>& word, uint64_t value, uint32_t looks) {
  for (uint32_t i = looks; i > 0; --i) {
    if (word.load(std::memory_order_acquire) >= value) return true;
    relax();
  }
  return word.load(std::memory_order_acquire) >= value;
}

// Who shares the processor with a rank that may be late, or has something else to do, gives it away
// at once. Where all of the team's there wait for the same round, and are about as many as share a
// processor, to look on is quicker than to switch to and fro: those on other processors are late (a
// barrier of 4 processes on 2 cores takes 0.75 of the time).
bool Rounds::await_short_slowly(uint32_t rank, uint64_t round) {
  const std::atomic<uint64_t>& published = line_of(rank, round).published;
  if (patience_->looks >= patience_->looks_together || size_ > most_looked_at) {
    return await_slowly(published, round, rank);
  }
  std::atomic<uint64_t>& waits = own().place.waits;
  waits.store(round, std::memory_order_relaxed);
  note_processor();
  const bool has_come_soon =
      all_here_wait_for(round) && has_come(published, round, patience_->looks_together);
  const bool good = has_come_soon || await_slowly(published, round, rank);
  waits.store(0, std::memory_order_relaxed);
  return good;
}

void Rounds::note_processor() {
  const auto here = static_cast<uint64_t>(sched_getcpu()) + 1;
  std::atomic<uint64_t>& noted = own().place.processor;
  if (noted.load(std::memory_order_relaxed) != here) noted.store(here, std::memory_order_relaxed);
}

bool Rounds::all_here_wait_for(uint64_t round) const {
  const uint64_t here = own().place.processor.load(std::memory_order_relaxed);
  uint32_t together = 0;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const ArenaPlace& place = area(rank).place;
    const uint64_t there = place.processor.load(std::memory_order_relaxed);
    if (there != here && there != 0) continue;
    if (place.waits.load(std::memory_order_relaxed) != round) return false;
    ++together;
  }
  return together >= patience_->least_together;
}

bool Rounds::open_slowly(uint64_t round) {
  uint64_t least = ~uint64_t{0};
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const std::atomic<uint64_t>& taken = area(rank).taken.round;
    if (rank != rank_ && !await_value(taken, round, rank)) return false;
    if (rank != rank_) least = std::min(least, taken.load(std::memory_order_acquire));
  }
  all_taken_ = least;
  return true;
}

bool Rounds::put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
  if (!begin_put(rank)) return false;
  const bool done = fetcher_->put(rank, address, from, bytes);
  end_put();
  return done || ask_to_take(rank, address, from, bytes);
}

bool Rounds::ask_for(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
  if (!open(errand_round, ArenaSlot::capacity)) return false;
  for (size_t at = 0; at < bytes; at += ArenaSlot::capacity) {
    const size_t piece = std::min(bytes - at, ArenaSlot::capacity);
    if (!ask(rank, address + at, piece, false)) return false;
    copy_bytes(to + at, errand_data(rank_), piece);
  }
  return true;
}

bool Rounds::ask_to_take(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
  if (!open(errand_round, ArenaSlot::capacity)) return false;
  for (size_t at = 0; at < bytes; at += ArenaSlot::capacity) {
    const size_t piece = std::min(bytes - at, ArenaSlot::capacity);
    copy_bytes(errand_data(rank_), from + at, piece);
    if (!ask(rank, address + at, piece, true)) return false;
  }
  return true;
}

bool Rounds::ask(uint32_t rank, uint64_t address, size_t bytes, bool is_put) {
  ArenaErrand& errand = own().errand;
  const uint64_t number = (errand.asked.load(std::memory_order_relaxed) >> 32) + 1;
  const uint64_t asked = number << 32 | (rank + uint64_t{1});
  errand.address = address;
  errand.bytes = static_cast<uint32_t>(bytes);
  errand.is_put = is_put;
  header_->strays.store(1, std::memory_order_release);
  errand.asked.store(asked, std::memory_order_release);
  return await_value(errand.done, asked, rank);
}

// What others ask of this rank. False: nothing.
bool Rounds::serve() {
  bool served = false;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    ArenaErrand& errand = area(rank).errand;
    const uint64_t asked = errand.asked.load(std::memory_order_acquire);
    const bool is_mine = static_cast<uint32_t>(asked) == rank_ + 1;
    // (Served long ago, it may have been followed by another rank's since `asked` was read.)
    if (!is_mine || errand.done.load(std::memory_order_relaxed) >= asked) continue;
    auto* const here = reinterpret_cast<std::byte*>(errand.address);
    std::byte* const there = errand_data(rank);
    copy_bytes(errand.is_put ? here : there, errand.is_put ? there : here, errand.bytes);
    errand.done.store(asked, std::memory_order_release);
    served = true;
  }
  return served;
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

// Writing a cause takes a moment; longer only where who writes is not let run, or was killed.
std::string Rounds::cause() const {
  const auto end = std::chrono::steady_clock::now() + longest_writing;
  uint32_t state = header_->aborted.load(std::memory_order_acquire);
  while (state == writing && std::chrono::steady_clock::now() < end) {
    sched_yield();
    state = header_->aborted.load(std::memory_order_acquire);
  }
  if (state == unaborted) return {};
  return state == written ? header_->cause : "another rank gave up";
}

}  // namespace sluice
