// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier in which each rank sends a token to each other and waits for one from each.
//
// Cost: 1 step, of p-1 messages of each rank at once.
#include "collectives/barrier/barrier.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_all_to_all(const Shape& shape) {
  PlanBuilder plan;
  for (Rank distance = 1; distance < shape.size; ++distance) {
    plan.send_token(ahead(shape.rank, distance, shape.size));
    plan.recv_token(behind(shape.rank, distance, shape.size));
  }
  return std::move(plan).build();
}

Cost all_to_all_cost(const Shape& shape) { return {.steps = shape.size > 1 ? 1.0 : 0.0}; }

}  // namespace

constexpr Algorithm barrier_all_to_all = {
    .collective = Collective::barrier,
    .name = "all_to_all",
    .help = "a token from each to each at once: few ranks",
    .plan = plan_all_to_all,
    .cost = all_to_all_cost,
};

}  // namespace sluice
