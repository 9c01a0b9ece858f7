// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather by recursive doubling: partners at distance 1, 2, 4 ... exchange all blocks that they
// have. If p is not a power of two, r = p - 2^k ranks fold into a neighbour (Fold): they send it
// their block first, and it forwards to them what it receives, round by round, while the next round
// runs.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): with k = floor(log2 p), if r = 0, k steps, and each rank sends (p-1)/p x
// S. Otherwise k + 2 steps, or k + 1 if r <= 2^(k-1), because then no block that was folded in
// reaches a rank that folds in the last round. Rank 1 sends most: it forwards p-1 blocks, and in
// round i < k sends those of 2^i core ranks, min(r, 2^i) of which stand for two:
// (2^k - 1 + min(r, 1) + min(r, 2) + min(r, 4) + ... + min(r, 2^(k-1)) + p-1)/p x S.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_recursive_doubling(const Shape& shape);
Cost allgather_recursive_doubling_cost(const Shape& shape);

}  // namespace sluice
