// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/double_tree.h"

#include <algorithm>

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

Plan allreduce_double_tree(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, first_of_two_trees(shape.rank, shape.size), {0, 1, 2});
    up_and_down(plan, second_of_two_trees(shape.rank, shape.size), {1, 2, 2});
  }
  return std::move(plan).build();
}

Cost allreduce_double_tree_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Rank others = shape.size - 1;
  const uint32_t depth = floor_log2(others) + 1;
  const uint32_t rounds = others == 1 ? 1 : floor_log2(others) + ceil_log2(others);
  // From four ranks on, a rank sends 3/2 x S in the tree where it has a parent and two children.
  return {.steps = static_cast<double>(rounds + depth), .bytes = std::min(2.0, shape.size / 2.0)};
}

}  // namespace sluice
