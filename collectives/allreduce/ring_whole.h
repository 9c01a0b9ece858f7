// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by a ring of whole vectors, as gloo's allreduce_ring: every rank's operand travels
// round the ring unreduced, and each rank combines all of them by itself.
//
// Cost (gloo, docs/algorithms.md, which rounds to p x S): p-1 steps; each rank sends (p-1) x S.
// Half the steps of `ring`; with two ranks it sends as many bytes, with more ranks more.
// Order: kept, with the same bits on all ranks. Operands reach each rank in a different order, so
// all ranks combine them by one binary tree over rank numbers (2i with 2i+1, then pairs with pairs,
// and so on), as soon as both operands of a node are there.
// Scratch: at most 2 ceil(log2 p) x S, and at most (p-1) x S: for operands that are being
// forwarded, and results of subtrees that wait for their sibling.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_ring_whole(const Shape& shape);
Cost allreduce_ring_whole_cost(const Shape& shape);

}  // namespace sluice
