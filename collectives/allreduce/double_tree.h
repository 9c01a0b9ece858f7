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
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_double_tree(const Shape& shape);
Cost allreduce_double_tree_cost(const Shape& shape);

}  // namespace sluice
