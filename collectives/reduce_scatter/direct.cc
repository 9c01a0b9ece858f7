// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce_scatter/direct.h"

#include <algorithm>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan reduce_scatter_direct(const Shape& shape) {
  const Piece own{Area::input, shape.rank, {}};
  PlanBuilder plan;
  if (shape.size == 1) {
    plan.copy(own, all_output);
    return std::move(plan).build();
  }
  for (Rank distance = 1; distance < shape.size; ++distance) {
    const Rank peer = ahead(shape.rank, distance, shape.size);
    plan.send(peer, Piece{Area::input, peer, {}});
  }
  // The result so far is always in output. Ranks 0 and 1 reduce the first operand as it arrives.
  Rank reduced = 1;
  if (shape.rank < 2) {
    plan.recv_reduce(1 - shape.rank, own, all_output, shape.rank == 1);
    reduced = 2;
  } else {
    plan.recv(0, all_output);
  }
  for (Rank peer = reduced; peer < shape.size; ++peer) {
    const Piece operand = peer == shape.rank ? own : plan.scratch(own);
    if (peer != shape.rank) plan.recv(peer, operand);
    plan.reduce(all_output, operand, all_output);
  }
  return std::move(plan).build();
}

Cost reduce_scatter_direct_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0,
          .bytes = (p - 1) / p,
          .scratch = std::max(0.0, (p - 2) / p)};
}

}  // namespace sluice
