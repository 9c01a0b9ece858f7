// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/patterns/tree.h"

#include <algorithm>
#include <bit>

namespace sluice {

namespace {

// Finds a rank's node in the tree over `tree`. children_of(subtree) returns the subtrees of its
// root's children.
template <typename ChildrenOf>
TreeNode descend(Rank rank, const Subtree& tree, ChildrenOf children_of) {
  TreeNode node{no_rank, tree, children_of(tree)};
  while (node.own.root != rank) {
    const Subtree below = *std::find_if(
        node.children.begin(), node.children.end(),
        [&](const Subtree& child) { return rank >= child.first && rank < child.last; });
    node = {node.own.root, below, children_of(below)};
  }
  return node;
}

std::vector<Subtree> binomial_children(Subtree tree) {
  std::vector<Subtree> children;
  while (tree.last - tree.first > 1) {
    const Rank middle = tree.first + std::bit_ceil(tree.last - tree.first) / 2;
    if (tree.root < middle) {
      children.push_back({middle, middle, tree.last});
      tree.last = middle;
    } else {
      children.push_back({tree.first, tree.first, middle});
      tree.first = middle;
    }
  }
  std::reverse(children.begin(), children.end());
  return children;
}

// Divides the ranks of a run, except its root, among the root's children, in rank order.
struct Shares {
  Shares(Rank ranks, uint32_t radix)
      : others(ranks - 1), count(std::clamp(radix, 1u, std::max(others, 1u))) {}

  uint32_t on_the_left() const { return count / 2; }
  // How many ranks the first `shares` shares have together.
  Rank before(uint32_t shares) const {
    return static_cast<Rank>(uint64_t{others} * shares / count);
  }

  Rank others;
  uint32_t count;
};

Subtree in_order_subtree(Rank first, Rank last, uint32_t radix) {
  const Shares shares(last - first, radix);
  return {first + shares.before(shares.on_the_left()), first, last};
}

std::vector<Subtree> in_order_children(const Subtree& tree, uint32_t radix) {
  std::vector<Subtree> children;
  const Shares shares(tree.last - tree.first, radix);
  const auto add = [&](Rank first, uint32_t share) {
    const Rank begin = first + shares.before(share), end = first + shares.before(share + 1);
    if (begin < end) children.push_back(in_order_subtree(begin, end, radix));
  };
  for (uint32_t i = shares.on_the_left(); i > 0; --i) add(tree.first, i - 1);
  for (uint32_t i = shares.on_the_left(); i < shares.count; ++i) add(tree.first + 1, i);
  return children;
}

// The subtree of a run of ranks whose root is the one with most trailing zeros in rank + shift.
Subtree even_subtree(Rank first, Rank last, Rank shift) {
  const Rank low = first + shift, high = last - 1 + shift;
  const Rank highest_change = std::bit_floor((low - 1) ^ high);
  return {(high & ~(highest_change - 1)) - shift, first, last};
}

std::vector<Subtree> even_children(const Subtree& tree, Rank shift) {
  std::vector<Subtree> children;
  if (tree.first < tree.root) children.push_back(even_subtree(tree.first, tree.root, shift));
  if (tree.root + 1 < tree.last) children.push_back(even_subtree(tree.root + 1, tree.last, shift));
  return children;
}

}  // namespace

TreeNode binomial_tree(Rank rank, Rank size, Rank root) {
  return descend(rank, {root, 0, size}, binomial_children);
}

TreeNode in_order_tree(Rank rank, Rank size, uint32_t radix) {
  return descend(rank, in_order_subtree(0, size, radix),
                 [&](const Subtree& tree) { return in_order_children(tree, radix); });
}

uint32_t in_order_depth(Rank size, uint32_t radix) {
  uint32_t depth = 0;
  for (; size > 1; ++depth) {
    const Shares shares(size, radix);
    size = (shares.others + shares.count - 1) / shares.count;
  }
  return depth;
}

uint32_t in_order_rounds(Rank size, uint32_t radix) {
  uint32_t rounds = 0;
  for (const Subtree& child : in_order_children(in_order_subtree(0, size, radix), radix)) {
    rounds = std::max(rounds, in_order_rounds(child.last - child.first, radix)) + 1;
  }
  return rounds;
}

TreeNode first_of_two_trees(Rank rank, Rank size) {
  return descend(rank, {0, 0, size}, [](const Subtree& tree) { return even_children(tree, 0); });
}

TreeNode second_of_two_trees(Rank rank, Rank size) {
  return descend(rank, even_subtree(0, size, 1),
                 [](const Subtree& tree) { return even_children(tree, 1); });
}

}  // namespace sluice
