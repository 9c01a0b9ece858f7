// SPDX-License-Identifier: BSD-3-Clause
//
// Gather up and scatter down the binomial tree (binomial_tree), whose subtrees are runs of ranks.
//
// Cost: as many steps as the tree is deep, floor(log2 p), or ceil(log2 p) if the root is in the
// smaller half. In gather most is sent by the leader of the root's largest subtree, of b ranks: b/p
// x S; in scatter by the root: (p-1)/p x S.
// Scratch: the b-1 blocks in transit there.
#include <algorithm>
#include <bit>
#include <numeric>

#include "collectives/gather/gather.h"
#include "collectives/gather/trees.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

std::vector<Rank> ranks_of(const Subtree& subtree) {
  std::vector<Rank> ranks(subtree.last - subtree.first);
  std::iota(ranks.begin(), ranks.end(), subtree.first);
  return ranks;
}

// The largest subtree first, as it has the longest way.
BlockTree binomial_blocks(const Shape& shape) {
  const TreeNode node = binomial_tree(shape.rank, shape.size, shape.root);
  BlockTree tree{node.parent, ranks_of(node.own), {}};
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    tree.children.push_back({child->root, ranks_of(*child)});
  }
  return tree;
}

Plan plan_gather_binomial(const Shape& shape) { return gather_up(shape, binomial_blocks(shape)); }
Plan plan_scatter_binomial(const Shape& shape) {
  return scatter_down(shape, binomial_blocks(shape));
}

Cost binomial_blocks_cost(const Shape& shape, double sent_by_root) {
  if (shape.size == 1) return {};
  const bool root_in_rest = shape.root >= std::bit_ceil(shape.size) / 2;
  Rank largest = 0;
  for (const Subtree& child : binomial_tree(shape.root, shape.size, shape.root).children) {
    largest = std::max(largest, child.last - child.first);
  }
  const double p = shape.size;
  return {
      .steps = static_cast<double>(root_in_rest ? ceil_log2(shape.size) : floor_log2(shape.size)),
      .bytes = std::max<double>(sent_by_root, largest) / p,
      .scratch = (largest - 1) / p};
}

Cost gather_binomial_cost(const Shape& shape) { return binomial_blocks_cost(shape, 0); }
Cost scatter_binomial_cost(const Shape& shape) {
  return binomial_blocks_cost(shape, shape.size - 1.0);
}

}  // namespace

constexpr Algorithm gather_binomial = {
    .collective = Collective::gather,
    .name = "binomial",
    .help = "up a tree of log2 p levels: many ranks, short blocks",
    .plan = plan_gather_binomial,
    .cost = gather_binomial_cost,
};

constexpr Algorithm scatter_binomial = {
    .collective = Collective::scatter,
    .name = "binomial",
    .help = "down a tree of log2 p levels: many ranks, short blocks",
    .plan = plan_scatter_binomial,
    .cost = scatter_binomial_cost,
};

}  // namespace sluice
