// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all with all messages at once. Each rank starts with its neighbour, so that not all send
// to rank 0 first.
//
// Cost: 1 step, of p-1 messages at once; each rank sends (p-1)/p x S, the least possible.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan alltoall_linear(const Shape& shape);
Cost alltoall_linear_cost(const Shape& shape);

}  // namespace sluice
