// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast from rank to rank: each forwards a segment while it receives the next. Long vectors
// reach every rank at the speed of one link.
//
// Cost (Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel and Dongarra, Performance analysis of
// MPI collective operations, Cluster Computing 10, 2007): p-1 steps, p-2 + n of n segments; each
// rank sends S.
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_chain(const Shape& shape) {
  PlanBuilder plan;
  if (shape.size > 1) {
    const Rank next = next_in_ring(shape.rank, shape.size);
    if (shape.rank != shape.root) plan.recv(previous_in_ring(shape.rank, shape.size), all_output);
    if (next != shape.root) plan.send(next, all_output);
  }
  return std::move(plan).build();
}

Cost chain_cost(const Shape& shape) {
  return {.steps = shape.size - 1.0, .bytes = shape.size > 1 ? 1.0 : 0.0};
}

}  // namespace

constexpr Algorithm broadcast_chain = {
    .collective = Collective::broadcast,
    .name = "chain",
    .help = "from rank to rank, pipelined by segments: long vectors, few ranks",
    .plan = plan_chain,
    .cost = chain_cost,
};

}  // namespace sluice
