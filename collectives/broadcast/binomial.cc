// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/binomial.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/patterns/tree.h"

namespace sluice {

Plan broadcast_binomial(const Shape& shape) {
  PlanBuilder plan;
  const TreeNode node = binomial_tree(shape.rank, shape.size, shape.root);
  if (node.parent != no_rank) plan.recv(node.parent, all_output);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost broadcast_binomial_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const uint32_t rounds = ceil_log2(shape.size);
  const bool root_in_rest = shape.root >= std::bit_ceil(shape.size) / 2;
  const uint32_t depth = root_in_rest ? rounds : floor_log2(shape.size);
  // Most is sent by the root, or by the rank that leads the half without it.
  const auto of_root = binomial_tree(shape.root, shape.size, shape.root).children.size();
  return {.steps = static_cast<double>(depth), .bytes = std::max<double>(of_root, rounds - 1)};
}

}  // namespace sluice
