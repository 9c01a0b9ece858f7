// SPDX-License-Identifier: BSD-3-Clause
//
// Where a rank of a reduce_scatter has its partial result of each block: at first in the input,
// then in scratch, or, for the rank's own block, in the output.
#pragma once

#include <vector>

#include "collectives/patterns/chunk.h"

namespace sluice {

class Partials {
 public:
  // plan: this rank's; must outlive this object.
  Partials(const Shape& shape, PlanBuilder& plan) : own_(shape.rank), plan_(plan) {
    for (Rank block = 0; block < shape.size; ++block) held_.push_back({Area::input, block, {}});
  }

  const Piece& of(Rank block) const { return held_[block]; }
  std::vector<Piece> of(const std::vector<Rank>& blocks) const {
    std::vector<Piece> pieces;
    for (const Rank block : blocks) pieces.push_back(held_[block]);
    return pieces;
  }
  // Returns where the block's next partial result goes. From here on `of` returns that place.
  const Piece& renew(Rank block) {
    if (block == own_) {
      held_[block] = all_output;
    } else if (held_[block].area != Area::scratch) {
      held_[block] = plan_.scratch(held_[block]);
    }
    return held_[block];
  }
  // Receives the peer's partial results of these blocks and combines them with those held here.
  void reduce_onto(Rank peer, const std::vector<Rank>& blocks, bool received_first) {
    if (blocks.empty()) return;  // a message without pieces would be a token
    const std::vector<Piece> operands = of(blocks);
    for (const Rank block : blocks) renew(block);
    plan_.recv_reduce(peer, operands, of(blocks), received_first);
  }

 private:
  const Rank own_;
  PlanBuilder& plan_;
  std::vector<Piece> held_;
};

}  // namespace sluice
