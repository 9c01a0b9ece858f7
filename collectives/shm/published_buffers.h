// SPDX-License-Identifier: BSD-3-Clause
//
// The buffers of a call that moves data with one copy (CMA): where ranks have them, and what they
// move between them.
#pragma once

#include <cstring>

#include "collectives/shm/cuts.h"
#include "collectives/shm/past_cache.h"

namespace sluice {

// The addresses of a rank's buffers, in its own address space.
struct BufferAddresses {
  uint64_t address;
  uint64_t bytes;
  uint64_t result;  // address that others put into; 0: none
  uint64_t is_in_reach;

  // Published as the round's size, in place of a length of data.
  static constexpr size_t claim = 0xFFFF'FFFF;
};

inline uint64_t address_of(const std::byte* data) { return reinterpret_cast<uintptr_t>(data); }

// Writes back what is there, one byte in each page. If the program has protected its receive buffer
// and unprotects it in a signal handler, as incremental checkpointers do, this runs the handler:
// another rank's put into a protected page would fail. (The program may protect its buffer anew
// before each call, so this can't be cached.)
inline void touch_pages(const Bytes& target) {
  for (size_t at = 0; at < target.size;) {
    volatile std::byte* const first = target.data + at;
    *first = *first;
    at += copy_page - reinterpret_cast<uintptr_t>(first) % copy_page;
  }
}

// Reads one byte in each page. If the program has protected its send buffer from reads, this runs
// its signal handler, which the kernel would not.
inline void read_pages(const Bytes& source) {
  for (size_t at = 0; at < source.size;) {
    const volatile std::byte* const first = source.data + at;
    (void)*first;
    at += copy_page - reinterpret_cast<uintptr_t>(first) % copy_page;
  }
}

// Puts piece by piece, and stops when a rank has aborted: the target may then use its memory for
// something else.
inline bool put_at(Rounds& rounds, Rank rank, uint64_t address, const Bytes& from) {
  const Cuts cuts{from.size, ShmCall::scratch_piece};
  for (uint64_t k = 1; k <= cuts.count(); ++k) {
    const size_t at = cuts.begin(k);
    if (!rounds.put(rank, address + at, from.data + at, cuts.size(k))) return false;
  }
  return true;
}

// Round 1 of the CMA algorithms: each rank publishes where its buffers are. A rank can read that
// until it has taken the round.
class PublishedBuffers {
 public:
  explicit PublishedBuffers(Rounds& rounds) : rounds_(rounds) {}

  // target: the part of this rank's receive buffer that others will put into.
  bool publish(const Bytes& data, const Bytes& target = {}) {
    if (!rounds_.open(1, sizeof(BufferAddresses))) return false;
    Cma& cma = *rounds_.cma();
    const bool is_in_reach =
        cma.is_in_reach(data.data, data.size) && cma.is_in_reach(target.data, target.size);
    if (is_in_reach) touch_pages(target);
    const BufferAddresses buffer{address_of(data.data), data.size, address_of(target.data),
                                 is_in_reach};
    all_in_reach_ = all_in_reach_ && is_in_reach;
    std::memcpy(rounds_.data(rounds_.rank(), 1, sizeof(buffer)), &buffer, sizeof(buffer));
    rounds_.publish(1, BufferAddresses::claim);
    return true;
  }
  // Waits for that rank's addresses. False if the wait failed, or if that rank does not have
  // `bytes` bytes.
  bool learn(Rank rank, size_t bytes) {
    if (!rounds_.await(rank, 1, BufferAddresses::claim)) return false;
    const BufferAddresses buffer = of(rank);
    all_in_reach_ = all_in_reach_ && buffer.is_in_reach != 0;
    return buffer.bytes == bytes || rounds_.disagree(rank, buffer.bytes, bytes);
  }
  bool learn_all(size_t bytes) {
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      if (rank != rounds_.rank() && !learn(rank, bytes)) return false;
    }
    return true;
  }
  // Whether the kernel can copy all buffers that this rank knows, its own included. When an
  // algorithm decides by it, all ranks know the same buffers.
  bool all_in_reach() const { return all_in_reach_; }
  // Runs the call through the slots, because some memory is out of reach. If ranks may have copied
  // here (allgather), none leaves that algorithm before all have entered it.
  bool go_by(const Algorithm& algorithm, const ShmCall& call) {
    return end_alone() && algorithm.shm(rounds_, call);
  }
  uint64_t address(Rank rank) const { return of(rank).address; }
  bool cma_get(Rank rank, size_t offset, const Bytes& to) {
    return to.size == 0 || rounds_.cma_get(rank, of(rank).address + offset, to.data, to.size);
  }
  bool put(Rank rank, size_t offset, const Bytes& from) {
    return put_at(rounds_, rank, of(rank).address + offset, from);
  }
  bool put_result(Rank rank, size_t offset, const Bytes& from) {
    return put_at(rounds_, rank, of(rank).result + offset, from);
  }
  // This rank moves nothing more. Waits until no other rank will touch its memory any more.
  bool end_with_all() {
    rounds_.mark_taken(1);
    return rounds_.await_taken(1) && end();
  }
  bool end_alone() {
    rounds_.mark_taken(1);
    return end();
  }

 private:
  BufferAddresses of(Rank rank) const {
    BufferAddresses buffer;
    std::memcpy(&buffer, rounds_.data(rank, 1, sizeof(buffer)), sizeof(buffer));
    return buffer;
  }
  bool end() {
    rounds_.end(1);
    return true;
  }

  Rounds& rounds_;
  bool all_in_reach_ = true;
};

// The block that a rank has for itself. The rank moves it first, while the others get ready. If all
// ranks' data outgrows the caches, the rank moves it last, past the caches, so that no other rank
// waits for that.
struct OwnBlock {
  std::byte* to;
  Bytes from;
  size_t all_bytes;  // of all ranks, in and out

  bool is_past_cache() const { return to != from.data && outgrows_cache(all_bytes); }
  void move_first() const {
    if (!is_past_cache()) move_bytes(to, from.data, from.size);
  }
  void move_last() const {
    if (is_past_cache()) copy_past_cache(to, from.data, from.size);
  }
};

}  // namespace sluice
