// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/scatter_allgather.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/tree.h"

namespace sluice {

namespace {

bool contains(const Subtree& tree, Rank rank) { return tree.first <= rank && rank < tree.last; }

}  // namespace

// Uses virtual ranks, in which the root is 0, so that the cost is the same for any root.
Plan broadcast_scatter_allgather(const Shape& shape) {
  const Rank size = shape.size;
  const Rank self = behind(shape.rank, shape.root, size);
  const auto real = [&](Rank virtual_rank) { return ahead(virtual_rank, shape.root, size); };
  PlanBuilder plan;
  if (size == 1) return std::move(plan).build();

  const TreeNode node = binomial_tree(self, size, 0);
  const auto chunks_of = [&](const Subtree& tree) {
    return chunks(Area::output, tree.first, tree.last, size);
  };
  if (node.parent != no_rank) plan.recv(real(node.parent), chunks_of(node.own));
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(real(child->root), chunks_of(*child));
  }

  const Rank next = next_in_ring(self, size);
  const Rank previous = previous_in_ring(self, size);
  const Subtree next_has = binomial_tree(next, size, 0).own;
  for (Rank step = 0; step + 1 < size; ++step) {
    const Rank out = behind(self, step, size);
    const Rank in = behind(previous, step, size);
    if (!contains(next_has, out)) plan.send(real(next), chunk(Area::output, out, size));
    if (!contains(node.own, in)) plan.recv(real(previous), chunk(Area::output, in, size));
  }
  return std::move(plan).build();
}

Cost broadcast_scatter_allgather_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = 2 * (p - 1) / p};
}

}  // namespace sluice
