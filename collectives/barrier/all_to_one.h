// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier in which rank 0 waits for a token from each other rank and then sends one to each:
// 2(p-1) messages in all, the fewest that a barrier can do with.
//
// Cost: 2 steps, of p-1 messages of rank 0 at once.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan barrier_all_to_one(const Shape& shape);
Cost barrier_all_to_one_cost(const Shape& shape);

}  // namespace sluice
