// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/tree.h"

#include <algorithm>

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"

namespace sluice {

Plan allreduce_tree(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, in_order_tree(shape.rank, shape.size, shape.radix), Part{});
  }
  return std::move(plan).build();
}

Cost allreduce_tree_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Rank others = shape.size - 1;
  const Rank of_root = std::clamp(shape.radix, 1u, others);
  const Rank below = (others + of_root - 1) / of_root - 1;  // most ranks below a child of the root
  const Rank of_child = std::min(of_root, below);
  return {.steps = static_cast<double>(in_order_rounds(shape.size, shape.radix) +
                                       in_order_depth(shape.size, shape.radix)),
          .bytes = static_cast<double>(std::max(of_root, of_child + 1))};
}

}  // namespace sluice
