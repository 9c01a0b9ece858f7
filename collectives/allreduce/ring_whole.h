// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by a ring of whole vectors, as gloo's allreduce_ring: every rank's operand travels
// round the ring unreduced, and each rank combines all of them by itself.
//
// Cost: p-1 steps, each rank sends (p-1) x S: half the steps of `ring`, more bytes from three ranks
// on. Order: kept, and the same bits on all ranks. The operands reach each rank in another order,
// so all ranks combine them by the same binary tree over rank numbers, as far as what has arrived
// allows: neighbours 2i and 2i+1, then pairs of pairs, and so on. Scratch: at most (ceil(log2 p) +
// 2) x S, for operands that are passed on and for subtrees that wait for their sibling.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_ring_whole(const Shape& shape);
Cost allreduce_ring_whole_cost(const Shape& shape);

}  // namespace sluice
