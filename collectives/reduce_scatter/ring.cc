// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce_scatter/ring.h"

#include <algorithm>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan reduce_scatter_ring(const Shape& shape) {
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

Cost reduce_scatter_ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = (p - 1) / p, .scratch = std::max(0.0, (p - 2) / p)};
}

}  // namespace sluice
