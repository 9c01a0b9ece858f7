// SPDX-License-Identifier: BSD-3-Clause
//
// Dissemination barrier: in round k each rank sends a token 2^k places ahead and waits for one from
// 2^k places behind. After that it knows that the 2^(k+1) ranks up to itself have entered.
//
// Cost (Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, International
// Journal of Parallel Programming 17, 1988): ceil(log2 p) steps.
#include "collectives/barrier/barrier.h"

#include <utility>

#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_dissemination(const Shape& shape) {
  PlanBuilder plan;
  for (Rank distance = 1; distance < shape.size; distance *= 2) {
    if (distance > 1) plan.fence();
    plan.send_token(ahead(shape.rank, distance, shape.size));
    plan.recv_token(behind(shape.rank, distance, shape.size));
  }
  return std::move(plan).build();
}

Cost dissemination_cost(const Shape& shape) {
  return {.steps = static_cast<double>(ceil_log2(shape.size))};
}

}  // namespace

constexpr Algorithm barrier_dissemination = {
    .collective = Collective::barrier,
    .name = "dissemination",
    .help = "tokens at doubling distance, log2 p rounds: the fastest for most",
    .plan = plan_dissemination,
    .cost = dissemination_cost,
};

}  // namespace sluice
