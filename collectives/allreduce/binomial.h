// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce as a reduction up a binomial tree to rank 0, and a broadcast down the same tree. For
// any number of ranks, all operands are combined by the balanced tree (Bracketing), in few steps.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005, for each half): ceil(log2 p) steps up and floor(log2 p) down; rank 0
// sends ceil(log2 p) x S.
// Order: kept. Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_binomial(const Shape& shape);
Cost allreduce_binomial_cost(const Shape& shape);

}  // namespace sluice
