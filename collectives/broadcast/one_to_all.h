// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast in which the root sends the vector to each other rank, all at once.
//
// Cost: 1 step, of p-1 messages at once; the root sends (p-1) x S.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_one_to_all(const Shape& shape);
Cost broadcast_one_to_all_cost(const Shape& shape);

}  // namespace sluice
