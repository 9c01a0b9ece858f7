// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/linear.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

Plan alltoall_linear(const Shape& shape) {
  PlanBuilder plan;
  for (Rank distance = 1; distance < shape.size; ++distance) {
    const Rank source = behind(shape.rank, distance, shape.size);
    const Rank target = ahead(shape.rank, distance, shape.size);
    plan.recv(source, Piece{Area::output, source, {}});
    plan.send(target, Piece{Area::input, target, {}});
  }
  plan.copy(Piece{Area::input, shape.rank, {}}, Piece{Area::output, shape.rank, {}});
  return std::move(plan).build();
}

Cost alltoall_linear_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0, .bytes = (p - 1) / p};
}

}  // namespace sluice
