// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/ring.h"

#include "collectives/patterns/chunk.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan reduce_ring(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else if (shape.rank == shape.root) {
    ring_reduce_scatter(plan, shape.rank, shape.size, all_input, all_output);
    for (Rank rank = 0; rank < shape.size; ++rank) {
      if (rank != shape.root) plan.recv(rank, chunk(Area::output, rank, shape.size));
    }
  } else {
    const Piece total = plan.scratch(all_input);
    ring_reduce_scatter(plan, shape.rank, shape.size, all_input, total);
    const Part own = chunk(Area::input, shape.rank, shape.size).part;
    plan.send(shape.root, {total.area, total.block, own});
  }
  return std::move(plan).build();
}

Cost reduce_ring_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = static_cast<double>(shape.size), .bytes = 1, .scratch = 1};
}

}  // namespace sluice
