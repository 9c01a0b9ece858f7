// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by a ring: reduce-scatter by chunks, then allgather of the chunks, both on the same
// ring.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009): 2(p-1) steps; each rank sends 2(p-1)/p x S, the least possible.
// Order: not kept: the operands of a chunk are combined in ring order.
// Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_ring(const Shape& shape) {
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

Cost ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = 2 * (p - 1), .bytes = 2 * (p - 1) / p};
}

}  // namespace

constexpr Algorithm allreduce_ring = {
    .collective = Collective::allreduce,
    .name = "ring",
    .help = "reduce-scatter and allgather on a ring: large messages, few ranks",
    .needs = {.commutative = true},
    .plan = plan_ring,
    .cost = ring_cost,
};

}  // namespace sluice
