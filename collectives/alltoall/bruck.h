// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck's all-to-all, for blocks of one size: a block that must travel d places goes in hops of the
// powers of two that sum to d, smallest first. In round k each rank sends all blocks whose d has
// bit k to the rank 2^k places ahead, as one message.
//
// Blocks are not rotated before or after: messages are gathered and scattered. Between hops a block
// is stored alternately in scratch and in the output, at the place where the block with the same d
// ends, so that its last hop ends in its place (Traeff, Rougier and Hunold, Implementing a classic:
// zero-copy all-to-all communication with MPI datatypes, ICS 2014).
//
// Cost (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications
// in multiport message-passing systems, IEEE TPDS 8, 1997): ceil(log2 p) rounds, and about
// ceil(log2 p)/2 x S from each rank (exact for powers of two): in round k, as many blocks as there
// are numbers below p with bit k. The last round does not wait for the one before if no d has the
// bits of both, so the critical path has 1 + ceil(log2(p/3)) steps, for p > 1.
// Scratch: (p-1 - ceil(log2 p))/p x S, a slot for each d that is not a power of two.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan alltoall_bruck(const Shape& shape);
Cost alltoall_bruck_cost(const Shape& shape);

}  // namespace sluice
