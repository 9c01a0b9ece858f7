// SPDX-License-Identifier: BSD-3-Clause
//
// Where a rank finds the blocks that it sends in an allgather: its own in the input, the others in
// the output. The input is valid from the start, and may be the output's own block, so nothing is
// copied first.
#pragma once

#include <vector>

#include "collectives/algorithm.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

inline Piece gathered_block(const Shape& shape, Rank of) {
  return of == shape.rank ? all_input : Piece{Area::output, of, {}};
}

// The blocks of `count` ranks from `first` on, round the ring.
inline std::vector<Piece> gathered_blocks(const Shape& shape, Rank first, Rank count) {
  std::vector<Piece> blocks;
  blocks.reserve(count);
  for (Rank i = 0; i < count; ++i) {
    blocks.push_back(gathered_block(shape, ahead(first, i, shape.size)));
  }
  return blocks;
}

// The last step of each allgather: copies the rank's own block. No step waits for it, and with
// MPI_IN_PLACE it does nothing.
inline void keep_own_block(const Shape& shape, PlanBuilder& plan) {
  plan.copy(all_input, {Area::output, shape.rank, {}});
}

}  // namespace sluice
