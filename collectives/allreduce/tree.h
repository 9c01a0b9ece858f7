// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on one tree: up to its root by reducing, and down again. Segments follow one another,
// and go down while later ones still come up.
//
// The tree is in_order_tree: at most Shape::radix children, the least depth for it, ranks in
// in-order numbering. Radix 2 is the default and what NCCL uses between hosts: with k children a
// rank moves k+1 vectors in and out, so that 2 costs the least bandwidth of all trees of
// logarithmic depth, and a binomial tree's root would move log2 p vectors. A larger radix is
// flatter, for small messages; radix 1 is a chain up and down, for very large ones.
//
// Cost (Sanders, Speck and Traeff 2009, as in double_tree.h, sections 1 and 2): 2d steps, d the
// depth; for radix 2 d = ceil(log2(p+1)) - 1. A rank sends S up and S to each child: (radix + 1) x
// S. Order: kept. Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_tree(const Shape& shape);
Cost allreduce_tree_cost(const Shape& shape);

}  // namespace sluice
