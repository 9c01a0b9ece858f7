// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/chain.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan reduce_chain(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  const Rank next = next_in_ring(shape.rank, shape.size);
  const Rank previous = previous_in_ring(shape.rank, shape.size);
  Piece sum = all_input;
  if (previous != shape.root) {
    sum = shape.rank == shape.root ? all_output : plan.scratch(all_input);
    plan.recv_reduce(previous, all_input, sum, previous < shape.rank);
  }
  if (shape.rank != shape.root) plan.send(next, sum);
  return std::move(plan).build();
}

Cost reduce_chain_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = shape.size - 1.0, .bytes = 1, .scratch = shape.size > 2 ? 1.0 : 0.0};
}

}  // namespace sluice
