// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter by recursive halving at doubling distance: partners at distance 1, 2, 4 ... each
// send half of the blocks that they still have partial results of, and reduce the other half. At
// distance d a rank keeps the blocks of the ranks that are equal to it modulo 2d. If p is not a
// power of two, r = p - 2^k ranks fold into a neighbour (Fold): they send it their whole input
// first, and receive their block from it at the end.
//
// Halving usually starts at the largest distance, so that a rank keeps one run of blocks, but then
// operands are not combined in order. At doubling distance a partial result always stands for a run
// of ranks, and the partner's for the run next to it, and the most data goes to the nearest rank.
// Strided blocks cost nothing, because messages are gathered anyway.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): with k = floor(log2 p), if r = 0, k steps, and each rank sends (p-1)/p x
// S; otherwise k + 2 steps, and ranks that fold send S.
// Order: kept. Scratch: (p-1)/p x S; if r = 0, half of the blocks except this rank's own, (p/2-1)/p
// x S. The partial result of a rank's own block is always in the output.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_recursive_halving(const Shape& shape);
Cost reduce_scatter_recursive_halving_cost(const Shape& shape);

}  // namespace sluice
