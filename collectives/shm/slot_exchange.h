// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange of blocks between all pairs of ranks, through the slots.
#pragma once

#include <limits>

#include "collectives/shm/cuts.h"

namespace sluice {

// Exchanges the blocks between different ranks whose bytes are within bounds. Round k holds the
// k-th piece of each block, at equal distances. `before` rounds of the call came before.
class SlotExchange {
 public:
  struct Bounds {
    size_t least = 0, most = std::numeric_limits<size_t>::max();
    bool contain(size_t bytes) const { return least <= bytes && bytes <= most; }
  };

  // claim: the size to publish, equal on all ranks. longest: bytes of the longest block, or, if not
  // all ranks know it, of the longest piece.
  SlotExchange(Rounds& rounds, const ShmCall& call, uint64_t before, size_t claim, size_t longest,
               Bounds bounds)
      : rounds_(rounds),
        call_(call),
        before_(before),
        claim_(claim),
        dealing_(rounds, call, longest, 1),
        bounds_(bounds) {}

  // Rounds that this rank's blocks need.
  uint64_t length() const {
    uint64_t most = 0;
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      most =
          std::max({most, pieces(call_.input, rank).count(), pieces(call_.output, rank).count()});
    }
    return most;
  }

  // length: the largest of all ranks' length().
  bool run(uint64_t length) {
    for (uint64_t k = 0; k <= length; ++k) {
      if (k < length && !put(k + 1)) return false;
      if (k > 0 && !get(k)) return false;
    }
    return true;
  }

 private:
  // (A rank's own block is not moved.)
  Cuts pieces(const Blocks& blocks, Rank rank) const {
    const size_t bytes = call_.block(blocks, rank).size;
    const bool is_moved = rank != rounds_.rank() && bounds_.contain(bytes);
    return {is_moved ? bytes : 0, dealing_.piece()};
  }
  bool put(uint64_t k) {
    const Rank me = rounds_.rank();
    if (!rounds_.open(before_ + k, dealing_.room())) return false;
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      const Cuts of = pieces(call_.input, rank);
      const std::byte* const from = call_.block(call_.input, rank).data + of.begin(k);
      if (rank != me) move_bytes(dealing_.place(me, rank, before_ + k), from, of.size(k));
    }
    rounds_.publish(before_ + k, claim_);
    return true;
  }
  bool get(uint64_t k) {
    const Rank me = rounds_.rank();
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      if (rank == me) continue;
      if (!rounds_.await(rank, before_ + k, claim_)) return false;
      const Cuts of = pieces(call_.output, rank);
      std::byte* const to = call_.block(call_.output, rank).data + of.begin(k);
      move_bytes(to, dealing_.place(rank, me, before_ + k), of.size(k));
    }
    rounds_.mark_taken(before_ + k);
    return true;
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const uint64_t before_;
  const size_t claim_;
  const Dealing dealing_;
  const Bounds bounds_;
};

}  // namespace sluice
