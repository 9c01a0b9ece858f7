// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a ring: reduce-scatter by chunks, then every rank sends its chunk to the root.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009, for the reduce-scatter): p-1 steps, and 1 for all chunks to the root. Each rank
// sends (p-1)/p x S, and those that are not the root S/p more: S.
// Order: not kept: the operands of a chunk are combined in ring order.
// Scratch: S, on ranks other than the root, for partial results.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_ring(const Shape& shape);
Cost reduce_ring_cost(const Shape& shape);

}  // namespace sluice
