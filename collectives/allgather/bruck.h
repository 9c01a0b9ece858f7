// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck's allgather: in round k each rank has the blocks of the 2^k ranks from itself on, sends
// them 2^k places back and gets as many from 2^k places ahead; the last round brings what is still
// missing. A message gathers its blocks from where they stand in the output, so they need not be
// rotated at the end.
//
// Cost (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all
// communications in multiport message-passing systems, IEEE TPDS 8, 1997): ceil(log2 p) rounds,
// each rank sends (p-1)/p x S. The last round does not wait for the one before if it brings at
// most half of what it could, so the steps one after another are 1 + ceil(log2(p/3)), for p > 1.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_bruck(const Shape& shape);
Cost allgather_bruck_cost(const Shape& shape);

}  // namespace sluice
