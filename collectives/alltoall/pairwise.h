// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all in p-1 exchanges, one after another: in exchange d a rank sends to the rank d places
// ahead and receives from the rank d places behind, so each rank receives from one rank at a time.
// A receive is posted one exchange early, so that it is there when its message arrives.
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
