// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/arena.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
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

constexpr uint32_t most_looked_at = 64;  // ranks; polling more takes as long as a context switch
constexpr uint32_t unaborted = 0, writing = 1, written = 2;
constexpr auto longest_writing = std::chrono::milliseconds(400);

}  // namespace

// Rounds continue after the highest that the earlier team used, so old flags count as past rounds.
void Rounds::prepare(std::byte* memory, uint32_t ranks) {
  auto* const header = reinterpret_cast<ArenaHeader*>(memory);
  auto* const areas = reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader));
  for (uint32_t rank = 0; rank < header->used; ++rank) {
    header->start = std::max(header->start, areas[rank].taken.round.load());
    header->cells_start[0] = std::max(header->cells_start[0], areas[rank].cells.taken.round.load());
    for (uint32_t set = 1; set < Cells::sets; ++set) {
      const ArenaCounter& taken = areas[rank].persistent[set - 1].taken;
      header->cells_start[set] = std::max(header->cells_start[set], taken.round.load());
    }
    areas[rank].left.round.store(0, std::memory_order_relaxed);
  }
  header->used = std::max(header->used, ranks);
  header->returning.store(0, std::memory_order_release);
}

namespace {

std::byte* cells_of_first(std::byte* memory, uint32_t set) {
  auto* const first = reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader));
  return set == 0 ? reinterpret_cast<std::byte*>(&first->cells)
                  : reinterpret_cast<std::byte*>(&first->persistent[set - 1]);
}

}  // namespace

Cells::Cells(std::byte* memory, uint32_t rank, uint32_t ranks, uint32_t set)
    : of_first_(cells_of_first(memory, set)),
      rank_(rank),
      size_(ranks),
      depth_(set == 0 ? ArenaRank::cells_depth : ArenaRank::persistent_depth),
      last_(reinterpret_cast<const ArenaHeader*>(memory)->cells_start[set]),
      all_taken_(last_),
      ended_(last_) {
  taken(rank_).store(last_, std::memory_order_release);
}

std::byte* Cells::data(uint32_t rank, uint64_t number, size_t bytes) const {
  if (bytes <= ArenaLine::inlined) return line(rank, number).beside;
  std::byte* const data = taken_at(rank) + sizeof(ArenaCounter) + depth_ * sizeof(ArenaLine);
  return data + (number & (depth_ - 1)) * capacity;
}

bool Cells::find_taken_by_all(uint64_t number) {
  uint64_t least = ended_;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    least = std::min(least, taken(rank).load(std::memory_order_acquire));
  }
  all_taken_ = least;
  return number <= all_taken_ + depth_;
}

void Cells::publish(uint64_t number, uint32_t signature, size_t bytes, size_t call_bytes) {
  ArenaLine& own = line(rank_, number);
  own.signature = signature;
  own.bytes = static_cast<uint32_t>(bytes);
  own.call_bytes = call_bytes;
  own.published.store(number, std::memory_order_release);
}

// (A call that ends is at most `depth` behind the first that has not, or it could not have begun.)
void Cells::end(uint64_t number) {
  later_ |= uint64_t{1} << (number - ended_ - 1);
  for (; (later_ & 1) != 0; later_ >>= 1) ++ended_;
  taken(rank_).store(ended_, std::memory_order_release);
}

Arena::Arena(const Rounds& rounds, std::byte* memory, uint32_t rank, uint32_t ranks)
    : rounds_(rounds) {
  cells_.reserve(Cells::sets);
  for (uint32_t set = 0; set < Cells::sets; ++set) cells_.emplace_back(memory, rank, ranks, set);
}

bool Rounds::await_slowly(const std::atomic<uint64_t>& word, uint64_t value, uint32_t rank) {
  wait_policy_->fresh = true;
  uint32_t looks = wait_policy_->looks;
  for (;; looks = wait_policy_->looks_between) {
    if (has_come(word, value, looks)) return true;
    if (signals_.is_aborted()) return false;
    if (!wait_policy_->wait(rank)) return false;
  }
}

bool Rounds::has_come(const std::atomic<uint64_t>& word, uint64_t value, uint32_t looks) {
  for (uint32_t i = looks; i > 0; --i) {
    if (word.load(std::memory_order_acquire) >= value) return true;
    relax();
  }
  return word.load(std::memory_order_acquire) >= value;
}

// A rank that shares its processor with a rank that may be late, or has other work, yields it at
// once. If all the team's ranks on the processor wait for the same round, and are about as many as
// share a processor, polling is faster than switching between them, because the late ranks are on
// other processors (a barrier of 4 processes on 2 cores takes 0.75 of the time).
bool Rounds::await_short_slowly(uint32_t rank, uint64_t round) {
  const std::atomic<uint64_t>& published = line_of(rank, round).published;
  if (wait_policy_->looks >= wait_policy_->looks_together || size_ > most_looked_at) {
    return await_slowly(published, round, rank);
  }
  std::atomic<uint64_t>& waits = own().place.waits;
  waits.store(round, std::memory_order_relaxed);
  note_processor();
  const bool has_come_soon =
      all_here_wait_for(round) && has_come(published, round, wait_policy_->looks_together);
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
  return together >= wait_policy_->least_together;
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

// (Calls of different sizes may use different algorithms, whose rounds can't be compared.)
bool Rounds::disagree_in_round(uint32_t rank, uint64_t k, size_t bytes) {
  const ArenaLine& at = line(rank, k);
  disagreement_ = {rank, at.signature, at.bytes, bytes};
  if (at.call_bytes != call_bytes_)
    disagreement_ = {rank, at.signature, at.call_bytes, call_bytes_};
  return false;
}

void ArenaSignals::abort(std::byte* memory, const std::string& cause) {
  auto* const header = reinterpret_cast<ArenaHeader*>(memory);
  uint32_t state = unaborted;
  if (!header->aborted.compare_exchange_strong(state, writing)) return;
  const size_t length = std::min(cause.size(), ArenaHeader::longest_cause - 1);
  std::memcpy(header->cause, cause.data(), length);
  header->cause[length] = 0;
  header->aborted.store(written, std::memory_order_release);
}

// Writing a cause takes a moment. It takes longer only if the writer is not scheduled, or was
// killed.
std::string ArenaSignals::cause() const {
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
