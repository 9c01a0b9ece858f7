// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by Rabenseifner's algorithm: reduce-scatter by halving vectors and doubling distances,
// then allgather by the same exchanges backwards. Ranks beyond a power of two fold into a neighbour
// first (Fold), and receive the result from it at the end.
//
// Cost (Rabenseifner, Optimization of collective reduction operations, ICCS 2004; Thakur,
// Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19,
// 2005): 2 log2 p steps; each rank sends 2(p-1)/p x S. If p is not a power of two, with c =
// 2^floor(log2 p): 2 log2 c + 2 steps and (2(c-1)/c + 1) x S.
// Order: kept: distances double, so a partial result always stands for a run of ranks.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_rabenseifner(const Shape& shape);
Cost allreduce_rabenseifner_cost(const Shape& shape);

}  // namespace sluice
