// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/bcube.h"

#include "collectives/allreduce/cube.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/radix.h"

namespace sluice {

Plan allreduce_bcube(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) plan.copy(all_input, all_output);
  cube_allreduce(plan, shape.rank, Fold::none(shape.size), shape.radix, all_input, all_output);
  return std::move(plan).build();
}

Cost allreduce_bcube_cost(const Shape& shape) {
  const double p = shape.size;
  double steps = 0;
  for (const uint32_t factor : factorize(shape.size, shape.radix)) steps += factor;
  return {.steps = steps, .bytes = 2 * (p - 1) / p};
}

}  // namespace sluice
