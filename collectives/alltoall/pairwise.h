// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all in p-1 exchanges, one after another: in the d-th a rank sends to the one d places
// ahead and receives from the one d places behind, so that one rank at a time sends to each. A
// receive is posted one exchange early, so that its message finds it there.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): p-1 steps, each rank sends (p-1)/p x S.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan alltoall_pairwise(const Shape& shape);
Cost alltoall_pairwise_cost(const Shape& shape);

}  // namespace sluice
