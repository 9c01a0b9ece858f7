// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/chain.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan broadcast_chain(const Shape& shape) {
  PlanBuilder plan;
  if (shape.size > 1) {
    const Rank next = next_in_ring(shape.rank, shape.size);
    if (shape.rank != shape.root) plan.recv(previous_in_ring(shape.rank, shape.size), all_output);
    if (next != shape.root) plan.send(next, all_output);
  }
  return std::move(plan).build();
}

Cost broadcast_chain_cost(const Shape& shape) {
  return {.steps = shape.size - 1.0, .bytes = shape.size > 1 ? 1.0 : 0.0};
}

}  // namespace sluice
