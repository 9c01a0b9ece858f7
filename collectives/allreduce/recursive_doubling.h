// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by recursive doubling: in round i, ranks that differ in bit i exchange all that they
// have, and both combine it. Ranks beyond a power of two fold into a neighbour first (Fold), and
// get the result from it at the end. The fastest for small messages.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): log2 p steps; each rank sends log2 p x S. Where p is no power of two,
// with k = floor(log2 p): k+2 steps and (k+1) x S.
// Order: kept.
// Scratch: S.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_recursive_doubling(const Shape& shape);
Cost allreduce_recursive_doubling_cost(const Shape& shape);

}  // namespace sluice
