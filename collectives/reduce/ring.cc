// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a ring: reduce-scatter by chunks, then every rank sends its chunk to the root.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009, for the reduce-scatter): p-1 steps, and 1 for all chunks to the root. Each rank
// sends (p-1)/p x S, and those that are not the root S/p more: S.
// Order: not kept: the operands of a chunk are combined in ring order.
// Scratch: S, on ranks other than the root, for partial results.
#include "collectives/reduce/reduce.h"

#include "collectives/patterns/chunk.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_ring(const Shape& shape) {
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

Cost ring_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = static_cast<double>(shape.size), .bytes = 1, .scratch = 1};
}

}  // namespace

constexpr Algorithm reduce_ring = {
    .collective = Collective::reduce,
    .name = "ring",
    .help = "reduce-scatter on a ring, then each chunk to the root: large messages",
    .needs = {.commutative = true},
    .plan = plan_ring,
    .cost = ring_cost,
};

}  // namespace sluice
