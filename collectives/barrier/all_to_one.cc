// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier in which rank 0 waits for a token from each other rank and then sends one to each:
// 2(p-1) messages in all, the fewest that a barrier can do with.
//
// Cost: 2 steps, of p-1 messages of rank 0 at once.
#include "collectives/barrier/barrier.h"

#include <utility>

namespace sluice {

namespace {

Plan plan_all_to_one(const Shape& shape) {
  PlanBuilder plan;
  if (shape.rank != 0) {
    plan.send_token(0);
    plan.recv_token(0);
  } else {
    for (Rank peer = 1; peer < shape.size; ++peer) plan.recv_token(peer);
    plan.fence();
    for (Rank peer = 1; peer < shape.size; ++peer) plan.send_token(peer);
  }
  return std::move(plan).build();
}

Cost all_to_one_cost(const Shape& shape) { return {.steps = shape.size > 1 ? 2.0 : 0.0}; }

}  // namespace

constexpr Algorithm barrier_all_to_one = {
    .collective = Collective::barrier,
    .name = "all_to_one",
    .help = "tokens to rank 0 and back: fewest messages",
    .plan = plan_all_to_one,
    .cost = all_to_one_cost,
};

}  // namespace sluice
