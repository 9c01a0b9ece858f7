// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by a ring: reduce-scatter by chunks, then allgather of the chunks, both on the same
// ring.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
// JPDC 69, 2009): 2(p-1) steps; each rank sends 2(p-1)/p x S, the least possible.
// Order: not kept: the operands of a chunk are combined in ring order.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_ring(const Shape& shape);
Cost allreduce_ring_cost(const Shape& shape);

}  // namespace sluice
