// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/pairwise.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

Plan alltoall_pairwise(const Shape& shape) {
  PlanBuilder plan;
  // Steps of the previous exchange; received_before: of the one before that.
  StepId sent = 0, received = 0, received_before = 0;
  for (Rank distance = 1; distance < shape.size; ++distance) {
    const Rank source = behind(shape.rank, distance, shape.size);
    const Rank target = ahead(shape.rank, distance, shape.size);
    const StepId receive = plan.recv(source, Piece{Area::output, source, {}});
    const StepId send = plan.send(target, Piece{Area::input, target, {}});
    if (distance > 1) {
      plan.order(sent, send);
      plan.order(received, send);
    }
    if (distance > 2) plan.order(received_before, receive);
    received_before = std::exchange(received, receive);
    sent = send;
  }
  plan.copy(Piece{Area::input, shape.rank, {}}, Piece{Area::output, shape.rank, {}});
  return std::move(plan).build();
}

Cost alltoall_pairwise_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = (p - 1) / p};
}

}  // namespace sluice
