// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on a ring, in both directions at once: each block travels floor(p/2) places ahead and
// ceil(p/2) - 1 places back, from neighbour to neighbour.
//
// The usual ring sends all blocks ahead, in p-1 steps. In both directions there are as many
// messages and bytes, as each rank still gets each block once, but no block goes further than half
// the ring. A rank has messages in flight to two neighbours, so while one of them is late, the
// other keeps the wire busy. A network that is itself a ring carries twice as much. (Segments are
// pipelined within a message, so blocks need not be cut into halves to keep the wire busy.)
//
// Cost: floor(p/2) steps; each rank sends (p-1)/p x S, as in the usual ring (Thakur, Rabenseifner
// and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19, 2005).
// Scratch: none.
#include "collectives/allgather/allgather.h"

#include <cmath>
#include <utility>

#include "collectives/allgather/blocks.h"

namespace sluice {

namespace {

Plan plan_ring(const Shape& shape) {
  const Rank size = shape.size;
  PlanBuilder plan(alias_of(Collective::allgather, shape.rank));
  const auto pass_on = [&](Rank from, Rank incoming, Rank outgoing, Rank to) {
    plan.send(to, gathered_block(shape, outgoing));
    plan.recv(from, gathered_block(shape, incoming));
  };
  for (Rank hop = 1; hop <= size / 2; ++hop) {
    const Rank next = next_in_ring(shape.rank, size);
    const Rank previous = previous_in_ring(shape.rank, size);
    pass_on(previous, behind(shape.rank, hop, size), behind(shape.rank, hop - 1, size), next);
    if (2 * hop == size) break;  // the block opposite comes from one side only
    pass_on(next, ahead(shape.rank, hop, size), ahead(shape.rank, hop - 1, size), previous);
  }
  keep_own_block(shape, plan);
  return std::move(plan).build();
}

Cost ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = std::floor(p / 2), .bytes = (p - 1) / p};
}

}  // namespace

constexpr Algorithm allgather_ring = {
    .collective = Collective::allgather,
    .name = "ring",
    .help = "blocks go round both ways at once, half the ring each: long blocks",
    .plan = plan_ring,
    .cost = ring_cost,
};

constexpr Algorithm allgatherv_ring = serving(Collective::allgatherv, allgather_ring);

}  // namespace sluice
