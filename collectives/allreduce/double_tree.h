// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two binary trees at once, each with one half of the vector, as NCCL does between
// hosts: no rank has children in both, so that each moves no more than two vectors in and two out
// in all.
//
// Cost (Sanders, Speck and Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, Parallel Computing 35, 2009): 2 ceil(log2 p) steps; each rank sends at most 2 x S: up to
// 3/2 in the tree in which it has children, 1/2 in the other. Order: kept: both trees are in
// in-order numbering (first_of_two_trees, second_of_two_trees). Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_double_tree(const Shape& shape);
Cost allreduce_double_tree_cost(const Shape& shape);

}  // namespace sluice
