// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter on a ring: the partial result of block r starts at rank r+1 and goes from
// neighbour to neighbour, each adding its own operand, until it is complete at rank r.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009): p-1 steps, each rank sends (p-1)/p x S, the least possible.
// Order: operands are combined in ring order, not in rank order. Scratch: (p-2)/p x S, a block for
// each block that passes through, as blocks may differ in size.
#include "collectives/reduce_scatter/reduce_scatter.h"

#include <algorithm>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_ring(const Shape& shape) {
  const Rank size = shape.size;
  const auto operand = [](Rank block) { return Piece{Area::input, block, {}}; };
  PlanBuilder plan;
  if (size == 1) {
    plan.copy(operand(0), all_output);
    return std::move(plan).build();
  }
  const Rank next = next_in_ring(shape.rank, size);
  const Rank previous = previous_in_ring(shape.rank, size);
  // The first partial result, of the previous rank's block, is this rank's operand alone.
  Piece partial = operand(previous);
  for (Rank step = 1; step < size; ++step) {
    const Piece own = operand(behind(previous, step, size));
    const Piece sum = step + 1 == size ? all_output : plan.scratch(own);
    plan.send(next, partial);
    plan.recv_reduce(previous, own, sum, shape.rank != 0);
    partial = sum;
  }
  return std::move(plan).build();
}

Cost ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = (p - 1) / p, .scratch = std::max(0.0, (p - 2) / p)};
}

}  // namespace

constexpr Algorithm reduce_scatter_ring = {
    .collective = Collective::reduce_scatter,
    .name = "ring",
    .help = "partial results go round from neighbour to neighbour: long vectors",
    .needs = {.commutative = true},
    .plan = plan_ring,
    .cost = ring_cost,
};

}  // namespace sluice
