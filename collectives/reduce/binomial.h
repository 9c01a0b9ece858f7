// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce up a binomial tree.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): ceil(log2 p) steps; each rank but the root sends S.
// Order: kept, whatever the root: each subtree is a run of ranks (binomial_tree).
// Scratch: S, on ranks inside the tree.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_binomial(const Shape& shape);
Cost reduce_binomial_cost(const Shape& shape);

}  // namespace sluice
