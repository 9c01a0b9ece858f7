// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/binomial.h"

#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan reduce_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  reduce_to_root(plan, binomial_tree(shape.rank, shape.size, shape.root));
  return std::move(plan).build();
}

Cost reduce_binomial_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = static_cast<double>(ceil_log2(shape.size)),
          .bytes = 1,
          .scratch = shape.size > 2 ? 1.0 : 0.0};
}

}  // namespace sluice
