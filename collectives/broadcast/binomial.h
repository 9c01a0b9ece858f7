// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast down the binomial tree (binomial_tree): a rank that has the vector sends it to its
// children, the deepest subtree first.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): ceil(log2 p) steps of one message at a time. If messages to several
// children go at once, the steps are the depth of the tree: floor(log2 p), or ceil(log2 p) if the
// root is in the smaller half. A rank sends S to each of its children. The root has most of them,
// or, if it is in the smaller half, the rank that leads the larger half: at most ceil(log2 p).
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_binomial(const Shape& shape);
Cost broadcast_binomial_cost(const Shape& shape);

}  // namespace sluice
