// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/rabenseifner.h"

#include "collectives/allreduce/cube.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

Plan allreduce_rabenseifner(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const Fold fold(shape.size);
  constexpr uint32_t radix = 2;
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else if (fold.folds(shape.rank)) {
    plan.send(shape.rank + 1, all_input);
    plan.recv(shape.rank + 1, all_output);
  } else if (fold.absorbs(shape.rank)) {
    plan.recv_reduce(shape.rank - 1, all_input, all_output, true);
    cube_allreduce(plan, shape.rank, fold, radix, all_output, all_output);
    plan.send(shape.rank - 1, all_output);
  } else {
    cube_allreduce(plan, shape.rank, fold, radix, all_input, all_output);
  }
  return std::move(plan).build();
}

Cost allreduce_rabenseifner_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Fold fold(shape.size);
  const double c = fold.core;
  const bool folds = fold.extra() > 0;
  return {.steps = 2 * floor_log2(shape.size) + (folds ? 2.0 : 0.0),
          .bytes = 2 * (c - 1) / c + (folds ? 1 : 0)};
}

}  // namespace sluice
