// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/barrier/all_to_all.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

Plan barrier_all_to_all(const Shape& shape) {
  PlanBuilder plan;
  for (Rank distance = 1; distance < shape.size; ++distance) {
    plan.send_token(ahead(shape.rank, distance, shape.size));
    plan.recv_token(behind(shape.rank, distance, shape.size));
  }
  return std::move(plan).build();
}

Cost barrier_all_to_all_cost(const Shape& shape) { return {.steps = shape.size > 1 ? 1.0 : 0.0}; }

}  // namespace sluice
