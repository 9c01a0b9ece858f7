// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two binary trees at once, each with one half of the vector, as NCCL does between
// hosts. No rank has children in both trees, so none moves more than two vectors in and two out.
//
// Cost (Sanders, Speck and Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, Parallel Computing 35, 2009): with n = p-1 ranks below the first tree's root, floor(log2 n)
// + ceil(log2 n) steps up, because a rank receives from its two children one after another, and
// floor(log2 n) + 1 down (for two ranks, 1 and 1). A rank sends at most 2 x S: 3/2 x S in the tree
// in which it has children, 1/2 x S in the other.
// Order: kept: both trees are in in-order numbering (first_of_two_trees, second_of_two_trees).
// Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include <algorithm>

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

Plan plan_double_tree(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, first_of_two_trees(shape.rank, shape.size), {0, 1, 2});
    up_and_down(plan, second_of_two_trees(shape.rank, shape.size), {1, 2, 2});
  }
  return std::move(plan).build();
}

Cost double_tree_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Rank others = shape.size - 1;
  const uint32_t depth = floor_log2(others) + 1;
  const uint32_t rounds = others == 1 ? 1 : floor_log2(others) + ceil_log2(others);
  // From four ranks on, a rank sends 3/2 x S in the tree where it has a parent and two children.
  return {.steps = static_cast<double>(rounds + depth), .bytes = std::min(2.0, shape.size / 2.0)};
}

}  // namespace

constexpr Algorithm allreduce_double_tree = {
    .collective = Collective::allreduce,
    .name = "double_tree",
    .help = "two binary trees, half the data on each: large messages, many ranks",
    .plan = plan_double_tree,
    .cost = double_tree_cost,
};

}  // namespace sluice
