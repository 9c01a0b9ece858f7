// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic of the shared-memory algorithms: data cut into pieces, one for each round.
#pragma once

#include <algorithm>

#include "collectives/shm/shm.h"
#include "src/base/copy.h"

namespace sluice {

// Some bytes, cut into rounds of at most `piece` each.
struct Cuts {
  size_t bytes, piece;

  uint64_t count() const { return bytes <= piece ? bytes > 0 : (bytes + piece - 1) / piece; }
  // The bytes of round k, counted from 1; none after the last round.
  size_t begin(uint64_t k) const { return std::min(bytes, (k - 1) * piece); }
  size_t size(uint64_t k) const { return std::min(piece, bytes - begin(k)); }
};

// Bytes of long data in a round. If ranks are oversubscribed, few long rounds are better; otherwise
// shorter rounds overlap better.
inline size_t long_piece(const ShmCall& call) {
  return call.in_turns ? ArenaSlot::capacity : ArenaSlot::capacity / 2;
}

// Bytes of a round of data that passes through the slots. Two ranks use short slots, unless
// oversubscribed.
inline size_t slot_piece(const Rounds& rounds, const ShmCall& call) {
  return rounds.size() == 2 && !call.in_turns ? ArenaShortSlot::capacity : long_piece(call);
}

// The largest multiple of `element` up to `bytes`; at least one element.
inline size_t whole_elements(size_t bytes, size_t element) {
  return std::max(is_power_of_two(element) ? bytes & ~(element - 1) : bytes - bytes % element,
                  element);
}

// The layout of rounds in which a rank has a piece for each other rank. The pieces lie at equal
// distances.
class Dealing {
 public:
  // longest: bytes of the longest block. Pieces hold whole elements.
  Dealing(Rounds& rounds, const ShmCall& call, size_t longest, size_t element)
      : rounds_(rounds),
        others_(std::max(rounds.size() - 1, Rank{1})),
        most_(slot_piece(rounds, call)),
        piece_(std::max(std::min(longest, whole_elements(most(), element)), size_t{1})) {}

  size_t piece() const { return piece_; }
  size_t room() const { return others_ * piece_; }
  std::byte* place(Rank from, Rank to, uint64_t k) const {
    return rounds_.data(from, k, room()) + (to < from ? to : to - 1) * piece_;
  }

 private:
  size_t most() const { return others_ == 1 ? most_ : most_ / others_ / 64 * 64; }

  Rounds& rounds_;
  const size_t others_, most_;
  const size_t piece_;
};

// A rank's share of a round's bytes. Shares are nearly equal, and cut between elements.
inline Bytes share(std::byte* data, size_t bytes, size_t element, Rank rank, Rank ranks) {
  const size_t n = bytes / element;
  const size_t begin = n * rank / ranks, end = n * (rank + 1) / ranks;
  return {data + begin * element, (end - begin) * element};
}

inline void move_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0 && to != from) copy_bytes(to, from, bytes);
}

// Copies this rank's block for itself.
inline void move_own_block(const Rounds& rounds, const ShmCall& call) {
  const Bytes from = call.block(call.input, rounds.rank());
  move_bytes(call.block(call.output, rounds.rank()).data, from.data, from.size);
}

// Combines all ranks' operands of one round in rank order. operand(rank) returns an address; `out`
// may be one of the first two operands, or memory that is no operand.
template <typename Operand>
void combine_in_order(const ShmCall& call, Rank ranks, const Operand& operand, std::byte* out,
                      size_t bytes) {
  if (bytes == 0) return;
  if (ranks == 1) return move_bytes(out, operand(0), bytes);
  call.combine(operand(0), operand(1), out, bytes);
  for (Rank rank = 2; rank < ranks; ++rank) call.combine(out, operand(rank), out, bytes);
}

inline bool await_all(Rounds& rounds, uint64_t k, size_t bytes) {
  for (Rank rank = 0; rank < rounds.size(); ++rank) {
    if (rank != rounds.rank() && !rounds.await(rank, k, bytes)) return false;
  }
  return true;
}

inline bool await_all_combined(Rounds& rounds, uint64_t k) {
  for (Rank rank = 0; rank < rounds.size(); ++rank) {
    if (rank != rounds.rank() && !rounds.await_combined(rank, k)) return false;
  }
  return true;
}

}  // namespace sluice
