// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast down the binomial tree (binomial_tree): a rank that has the vector sends it to its
// children, the deepest subtree first.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): ceil(log2 p) steps of one message at a time. If messages to several
// children go at once, the steps are the depth of the tree: floor(log2 p), or ceil(log2 p) if the
// root is in the smaller half. A rank sends S to each of its children. The root has most of them,
// or, if it is in the smaller half, the rank that leads the larger half: at most ceil(log2 p).
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/patterns/tree.h"

namespace sluice {

namespace {

Plan plan_binomial(const Shape& shape) {
  PlanBuilder plan;
  const TreeNode node = binomial_tree(shape.rank, shape.size, shape.root);
  if (node.parent != no_rank) plan.recv(node.parent, all_output);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost binomial_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const uint32_t rounds = ceil_log2(shape.size);
  const bool root_in_rest = shape.root >= std::bit_ceil(shape.size) / 2;
  const uint32_t depth = root_in_rest ? rounds : floor_log2(shape.size);
  // Most is sent by the root, or by the rank that leads the half without it.
  const auto of_root = binomial_tree(shape.root, shape.size, shape.root).children.size();
  return {.steps = static_cast<double>(depth), .bytes = std::max<double>(of_root, rounds - 1)};
}

}  // namespace

constexpr Algorithm broadcast_binomial = {
    .collective = Collective::broadcast,
    .name = "binomial",
    .help = "down a tree of log2 p levels: short vectors",
    .plan = plan_binomial,
    .cost = binomial_cost,
};

}  // namespace sluice
