// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/direct.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan reduce_direct(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::reduce, rank));
  if (size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  const Piece own = chunk(Area::input, rank, size);
  const bool is_root = rank == shape.root;
  const Piece result = is_root ? chunk(Area::output, rank, size) : plan.scratch(own);
  send_chunks(plan, rank, size);
  reduce_balanced(plan, rank, size, own, result);
  if (!is_root) plan.send(shape.root, result);
  for (Rank distance = 1; is_root && distance < size; ++distance) {
    const Rank peer = behind(rank, distance, size);
    plan.recv(peer, chunk(Area::output, peer, size));
  }
  return std::move(plan).build();
}

Cost reduce_direct_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {
      .steps = 2, .bytes = 1, .scratch = (reduce_balanced_slots(shape.size) + 1.0) / shape.size};
}

}  // namespace sluice
