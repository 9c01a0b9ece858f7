// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter in which each rank sends block r of its input to rank r, all at once; rank r
// combines the blocks that it receives and its own by the balanced tree (Bracketing).
//
// Cost: 1 step, of p-1 messages at once; each rank sends (p-1)/p x S.
// Order: kept. Scratch: a block for each rank but this one and its neighbour, (p-2)/p x S; the last
// of an odd number of ranks has no neighbour, so (p-1)/p x S.
#include "collectives/reduce_scatter/reduce_scatter.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_direct(const Shape& shape) {
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
  reduce_balanced(plan, shape.rank, shape.size, own, all_output);
  return std::move(plan).build();
}

Cost direct_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0,
          .bytes = (p - 1) / p,
          .scratch = reduce_balanced_slots(shape.size) / p};
}

}  // namespace

constexpr Algorithm reduce_scatter_direct = {
    .collective = Collective::reduce_scatter,
    .name = "direct",
    .help = "each sends to each, and reduces by the balanced tree: few ranks",
    .plan = plan_direct,
    .cost = direct_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
