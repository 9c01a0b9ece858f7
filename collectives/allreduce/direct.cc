// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/direct.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan allreduce_direct(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::allreduce, rank));
  if (size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  const Piece result = chunk(Area::output, rank, size);
  send_chunks(plan, rank, size);
  reduce_balanced(plan, rank, size, chunk(Area::input, rank, size), result);
  for (Rank distance = 1; distance < size; ++distance) {
    plan.send(ahead(rank, distance, size), result);
  }
  for (Rank distance = 1; distance < size; ++distance) {
    const Rank peer = behind(rank, distance, size);
    plan.recv(peer, chunk(Area::output, peer, size));
  }
  return std::move(plan).build();
}

Cost allreduce_direct_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const double p = shape.size;
  return {.steps = 2, .bytes = 2 * (p - 1) / p, .scratch = reduce_balanced_slots(shape.size) / p};
}

}  // namespace sluice
