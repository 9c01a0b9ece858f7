// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter on a ring: the partial result of block r starts at rank r+1 and goes from
// neighbour to neighbour, each adding its own operand, until it is complete at rank r.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009): p-1 steps, each rank sends (p-1)/p x S, the least possible.
// Order: operands are combined in ring order, not in rank order. Scratch: (p-2)/p x S, a slot for
// each block that passes through, as blocks may differ in size.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_ring(const Shape& shape);
Cost reduce_scatter_ring_cost(const Shape& shape);

}  // namespace sluice
