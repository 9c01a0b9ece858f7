// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all with all messages at once. Each rank starts with its neighbour, so that not all send
// to rank 0 first.
//
// Cost: 1 step, of p-1 messages at once; each rank sends (p-1)/p x S, the least possible.
// Scratch: none.
#include "collectives/alltoall/alltoall.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_linear(const Shape& shape) {
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

Cost linear_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0, .bytes = (p - 1) / p};
}

}  // namespace

constexpr Algorithm alltoall_linear = {
    .collective = Collective::alltoall,
    .name = "linear",
    .help = "all messages at once: few ranks or short blocks",
    .plan = plan_linear,
    .cost = linear_cost,
};

constexpr Algorithm alltoallv_linear = serving(Collective::alltoallv, alltoall_linear);

}  // namespace sluice
