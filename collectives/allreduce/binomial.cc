// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce as a reduction up a binomial tree to rank 0, and a broadcast down the same tree. For
// any number of ranks, all operands are combined by the balanced tree (Bracketing), in few steps.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005, for each half): ceil(log2 p) steps up and floor(log2 p) down; rank 0
// sends ceil(log2 p) x S.
// Order: kept. Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

Plan plan_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, binomial_tree(shape.rank, shape.size, 0), Part{});
  }
  return std::move(plan).build();
}

Cost binomial_cost(const Shape& shape) {
  const double rounds = ceil_log2(shape.size);
  return {.steps = rounds + floor_log2(shape.size), .bytes = rounds};
}

}  // namespace

constexpr Algorithm allreduce_binomial = {
    .collective = Collective::allreduce,
    .name = "binomial",
    .help = "up and down a binomial tree: small messages, by the balanced tree",
    .plan = plan_binomial,
    .cost = binomial_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
