// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all in p-1 exchanges, one after another: in exchange d a rank sends to the rank d places
// ahead and receives from the rank d places behind, so each rank receives from one rank at a time.
// A receive is posted one exchange early, so that it is there when its message arrives.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): p-1 steps, each rank sends (p-1)/p x S.
// Scratch: none.
#include "collectives/alltoall/alltoall.h"

#include <utility>

#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_pairwise(const Shape& shape) {
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

Cost pairwise_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = (p - 1) / p};
}

}  // namespace

constexpr Algorithm alltoall_pairwise = {
    .collective = Collective::alltoall,
    .name = "pairwise",
    .help = "p-1 exchanges one after another: long blocks, many ranks",
    .plan = plan_pairwise,
    .cost = pairwise_cost,
};

constexpr Algorithm alltoallv_pairwise = serving(Collective::alltoallv, alltoall_pairwise);

}  // namespace sluice
