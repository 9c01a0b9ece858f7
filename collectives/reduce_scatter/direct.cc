// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce_scatter/direct.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

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
  reduce_balanced(plan, shape.rank, shape.size, own, all_output);
  return std::move(plan).build();
}

Cost reduce_scatter_direct_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0,
          .bytes = (p - 1) / p,
          .scratch = reduce_balanced_slots(shape.size) / p};
}

}  // namespace sluice
