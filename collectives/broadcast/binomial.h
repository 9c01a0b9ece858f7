// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast down the binomial tree (binomial_tree): who has the vector sends it to its children,
// the deepest subtree first.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): ceil(log2 p) steps of one message at a time. Messages to several
// children at once go by the depth of the tree: floor(log2 p) steps, but ceil(log2 p) if the root
// is in the smaller half. A rank sends S to each of its children; who has most of them is the root
// or, if it is in the smaller half, the rank that leads the larger: at most ceil(log2 p).
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_binomial(const Shape& shape);
Cost broadcast_binomial_cost(const Shape& shape);

}  // namespace sluice
