// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter in which each rank sends block r of its input to rank r, all at once; rank r
// reduces what it gets and its own strictly from rank 0 to rank p-1, as a serial loop over the
// ranks would.
//
// Cost: 1 step, of p-1 messages at once; each rank sends (p-1)/p x S.
// Order: kept. Scratch: (p-2)/p x S, a slot for each rank but this one and the first to be
// reduced.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_direct(const Shape& shape);
Cost reduce_scatter_direct_cost(const Shape& shape);

}  // namespace sluice
