// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a chain, as NCCL's ring reduce: the operands go round the ring from the rank after the
// root to the root, each rank adding its own. Segments follow one another, so that for many
// segments all links are busy at once.
//
// Cost (a pipeline; e.g. Pjesivac-Grbovic et al., Performance analysis of MPI collective
// operations, Cluster Computing 10, 2007): p-1 steps, each rank but the root sends S; in m segments
// the time is that of p-2+m segments. Order: taken from the root onwards; in rank order only for
// the roots 0 and p-1. Scratch: S, on the ranks inside the chain.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_chain(const Shape& shape);
Cost reduce_chain_cost(const Shape& shape);

}  // namespace sluice
