// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/barrier/all_to_one.h"

#include <utility>

namespace sluice {

Plan barrier_all_to_one(const Shape& shape) {
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

Cost barrier_all_to_one_cost(const Shape& shape) { return {.steps = shape.size > 1 ? 2.0 : 0.0}; }

}  // namespace sluice
