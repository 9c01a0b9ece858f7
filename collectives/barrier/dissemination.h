// SPDX-License-Identifier: BSD-3-Clause
//
// Dissemination barrier: in round k each rank sends a token 2^k places ahead and waits for one from
// 2^k places behind. After that it knows that the 2^(k+1) ranks up to itself have entered.
//
// Cost (Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, International
// Journal of Parallel Programming 17, 1988): ceil(log2 p) steps.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan barrier_dissemination(const Shape& shape);
Cost barrier_dissemination_cost(const Shape& shape);

}  // namespace sluice
