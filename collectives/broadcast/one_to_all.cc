// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast in which the root sends the vector to each other rank, all at once.
//
// Cost: 1 step, of p-1 messages at once; the root sends (p-1) x S.
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_one_to_all(const Shape& shape) {
  PlanBuilder plan;
  if (shape.rank != shape.root) {
    plan.recv(shape.root, all_output);
  } else {
    for (Rank distance = 1; distance < shape.size; ++distance) {
      plan.send(ahead(shape.root, distance, shape.size), all_output);
    }
  }
  return std::move(plan).build();
}

Cost one_to_all_cost(const Shape& shape) {
  return {.steps = shape.size > 1 ? 1.0 : 0.0, .bytes = shape.size - 1.0};
}

}  // namespace

constexpr Algorithm broadcast_one_to_all = {
    .collective = Collective::broadcast,
    .name = "one_to_all",
    .help = "the root sends to each: short vectors, few ranks",
    .plan = plan_one_to_all,
    .cost = one_to_all_cost,
};

}  // namespace sluice
