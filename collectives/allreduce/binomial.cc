// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/binomial.h"

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

Plan allreduce_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, binomial_tree(shape.rank, shape.size, 0), Part{});
  }
  return std::move(plan).build();
}

Cost allreduce_binomial_cost(const Shape& shape) {
  const double rounds = ceil_log2(shape.size);
  return {.steps = rounds + floor_log2(shape.size), .bytes = rounds};
}

}  // namespace sluice
