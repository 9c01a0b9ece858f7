// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter in which each rank sends block r of its input to rank r, all at once; rank r
// combines the blocks that it receives and its own by the balanced tree (Bracketing).
//
// Cost: 1 step, of p-1 messages at once; each rank sends (p-1)/p x S.
// Order: kept. Scratch: a slot for each rank but this one and its neighbour, (p-2)/p x S; the last
// of an odd number of ranks has no neighbour, so (p-1)/p x S.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_direct(const Shape& shape);
Cost reduce_scatter_direct_cost(const Shape& shape);

}  // namespace sluice
