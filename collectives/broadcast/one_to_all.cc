// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/one_to_all.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan broadcast_one_to_all(const Shape& shape) {
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

Cost broadcast_one_to_all_cost(const Shape& shape) {
  return {.steps = shape.size > 1 ? 1.0 : 0.0, .bytes = shape.size - 1.0};
}

}  // namespace sluice
