// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/binomial.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan reduce_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  const TreeNode node = binomial_tree(shape.rank, shape.size, shape.root);
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else if (shape.rank == shape.root) {
    reduce_up(plan, node, all_input, all_output);
  } else {
    const Piece total = node.children.empty() ? all_input : plan.scratch(all_input);
    reduce_up(plan, node, all_input, total);
  }
  return std::move(plan).build();
}

Cost reduce_binomial_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = static_cast<double>(ceil_log2(shape.size)),
          .bytes = 1,
          .scratch = shape.size > 2 ? 1.0 : 0.0};
}

}  // namespace sluice
