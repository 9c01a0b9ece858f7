// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/ring.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan allreduce_ring(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::allreduce, rank));
  if (size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  ring_reduce_scatter(plan, rank, size, all_input, all_output);
  ring_allgather(plan, rank, size, all_output);
  return std::move(plan).build();
}

Cost allreduce_ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = 2 * (p - 1), .bytes = 2 * (p - 1) / p};
}

}  // namespace sluice
