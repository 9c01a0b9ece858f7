// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/barrier/dissemination.h"

#include <utility>

#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan barrier_dissemination(const Shape& shape) {
  PlanBuilder plan;
  for (Rank distance = 1; distance < shape.size; distance *= 2) {
    if (distance > 1) plan.fence();
    plan.send_token(ahead(shape.rank, distance, shape.size));
    plan.recv_token(behind(shape.rank, distance, shape.size));
  }
  return std::move(plan).build();
}

Cost barrier_dissemination_cost(const Shape& shape) {
  return {.steps = static_cast<double>(ceil_log2(shape.size))};
}

}  // namespace sluice
