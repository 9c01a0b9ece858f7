// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier in which each rank sends a token to each other and waits for one from each.
//
// Cost: 1 step, of p-1 messages of each rank at once.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan barrier_all_to_all(const Shape& shape);
Cost barrier_all_to_all_cost(const Shape& shape);

}  // namespace sluice
