// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on one tree: reduces up to its root, and broadcasts down again. Segments are pipelined:
// the first go down while later ones still come up.
//
// The tree is in_order_tree with Shape::radix. 2 is the default, and what NCCL uses between hosts:
// a rank inside a tree of radix k moves k+1 vectors in and out, so 2 needs the least bandwidth of
// all trees of logarithmic depth (a binomial tree's root would move log2 p vectors). A larger radix
// is flatter; radix 1 is a chain up and down.
//
// Cost (Sanders, Speck and Traeff 2009, see double_tree.h, on pipelined binary trees): k d steps up
// in a complete tree of radix k and depth d, because a rank receives its operands one after
// another, and d steps down; in general in_order_rounds + in_order_depth. A rank sends S up and S
// to each child: (k+1) x S.
// Order: kept.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_tree(const Shape& shape);
Cost allreduce_tree_cost(const Shape& shape);

}  // namespace sluice
