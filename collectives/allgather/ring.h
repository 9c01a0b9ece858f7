// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on a ring, in both directions at once: each block travels floor(p/2) places ahead and
// ceil(p/2) - 1 places back, from neighbour to neighbour.
//
// The usual ring sends all blocks ahead, in p-1 steps. In both directions there are as many
// messages and bytes, as each rank still gets each block once, but no block goes further than half
// the ring. A rank has messages in flight to two neighbours, so while one of them is late, the
// other keeps the wire busy. A network that is itself a ring carries twice as much. (Segments are
// pipelined within a message, so blocks need not be cut into halves to keep the wire busy.)
//
// Cost: floor(p/2) steps; each rank sends (p-1)/p x S, as in the usual ring (Thakur, Rabenseifner
// and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19, 2005).
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_ring(const Shape& shape);
Cost allgather_ring_cost(const Shape& shape);

}  // namespace sluice
