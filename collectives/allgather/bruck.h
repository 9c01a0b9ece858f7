// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck's allgather: in round k each rank has the blocks of the 2^k ranks from itself on. It sends
// them to the rank 2^k places back and receives as many from the rank 2^k places ahead; the last
// round moves only the missing blocks. A message is gathered from the blocks' final places in the
// output, so no rotation is needed at the end.
//
// Cost (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications
// in multiport message-passing systems, IEEE TPDS 8, 1997): ceil(log2 p) rounds, each rank sends
// (p-1)/p x S. The last round does not wait for the one before if it moves at most half of the
// blocks that it could, so the critical path has 1 + ceil(log2(p/3)) steps, for p > 1.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_bruck(const Shape& shape);
Cost allgather_bruck_cost(const Shape& shape);

}  // namespace sluice
