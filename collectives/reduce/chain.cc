// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a chain, as NCCL's ring reduce: from the rank after the root round the ring to the
// root, each rank adding its own operand. Segments are pipelined, so with many of them all links
// are busy at once.
//
// Cost (pipeline algorithm; Pjesivac-Grbovic et al., Performance analysis of MPI collective
// operations, Cluster Computing 10, 2007): p-1 steps; each rank but the root sends S. With m
// segments it takes as long as p-2+m segments.
// Order: not kept, except for the roots 0 and p-1.
// Scratch: S, on ranks inside the chain.
#include "collectives/reduce/reduce.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_chain(const Shape& shape) {
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

Cost chain_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = shape.size - 1.0, .bytes = 1, .scratch = shape.size > 2 ? 1.0 : 0.0};
}

}  // namespace

constexpr Algorithm reduce_chain = {
    .collective = Collective::reduce,
    .name = "chain",
    .help = "pipeline from rank to rank towards the root: very large messages, few ranks",
    .needs = {.commutative = true},
    .plan = plan_chain,
    .cost = chain_cost,
};

}  // namespace sluice
