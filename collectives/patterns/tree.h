// SPDX-License-Identifier: BSD-3-Clause
//
// Trees over ranks 0..size-1, seen from one of them. In all of them each subtree spans a run of
// neighbouring ranks, so operands can be combined in rank order, and a subtree's chunks are
// contiguous.
#pragma once

#include <limits>
#include <vector>

#include "collectives/plan.h"

namespace sluice {

inline constexpr Rank no_rank = std::numeric_limits<Rank>::max();

// A root and the ranks of its subtree, [first, last), the root included.
struct Subtree {
  Rank root, first, last;
  bool operator==(const Subtree&) const = default;
};

// A rank's position in a tree. Children are in the order in which a reduction receives from them:
// each child's ranks are directly left or right of the ranks that the node has combined so far,
// which begin with itself. (A broadcast goes through them backwards.)
struct TreeNode {
  Rank parent = no_rank;  // no_rank at the root
  Subtree own{};
  std::vector<Subtree> children;
};

// The binomial tree with any root: ceil(log2 size) rounds if each rank receives from (or sends to)
// one child at a time. The ranks are split at a power of two. The first rank of the half without
// the root leads it, as a child of the root, and so on in each half. With root 0 this is the
// well-known tree: children r+1, r+2, r+4 ... (The usual way to another root rotates the ranks,
// which neither keeps their order nor makes subtrees contiguous.)
TreeNode binomial_tree(Rank rank, Rank size, Rank root);

// The tree of least depth in which each node has at most `radix` children, half of them on its
// left: a complete radix-ary tree in in-order numbering. Radix 1 (or less) gives the chain 0 <- 1
// <- 2 ..., with root 0; otherwise the root is near the middle. A node's ranks are divided evenly
// among its children.
TreeNode in_order_tree(Rank rank, Rank size, uint32_t radix);
// The number of edges from its root to the deepest rank.
uint32_t in_order_depth(Rank size, uint32_t radix);
// The number of messages in sequence until its root has all operands, if each rank receives from
// one child at a time: radix times the depth if the tree is complete.
uint32_t in_order_rounds(Rank size, uint32_t radix);

// Two binary trees in which no rank has children in both (Sanders, Speck and Traeff: Two-tree
// algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35, 2009): each
// carries one half of a vector, and every rank's links are used both ways. The first has root 0,
// and only even ranks have children. The second is the same tree shifted by one rank, without root
// 0, and only odd ranks have children. Depth: ceil(log2 size).
//
//   p = 7    first:  0             second:       3
//                    4                       1       5
//                 2     6                  0   2   4   6
//               1   3 5
TreeNode first_of_two_trees(Rank rank, Rank size);
TreeNode second_of_two_trees(Rank rank, Rank size);

}  // namespace sluice
