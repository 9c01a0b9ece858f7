// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allgather/ring.h"

#include <cmath>
#include <utility>

#include "collectives/allgather/blocks.h"

namespace sluice {

Plan allgather_ring(const Shape& shape) {
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

Cost allgather_ring_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = std::floor(p / 2), .bytes = (p - 1) / p};
}

}  // namespace sluice
