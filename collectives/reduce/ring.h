// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a ring: reduce-scatter by chunks, then every rank sends its chunk to the root.
//
// Cost (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69, 2009, for the
// reduce-scatter; the gather is direct): p steps; each rank sends (p-1)/p x S, and those that are
// not the root S/p more: S. The root receives 2(p-1)/p x S, (p-1)/p x S of it in one step from all.
// Order: operands are taken round the ring, not in rank order. Scratch: S, where sums pass that are
// not the root's.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_ring(const Shape& shape);
Cost reduce_ring_cost(const Shape& shape);

}  // namespace sluice
