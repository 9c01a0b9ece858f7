// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce by a chain, as NCCL's ring reduce: from the rank after the root round the ring to the
// root, each rank adding its own operand. Segments are pipelined, so with many of them all links
// are busy at once.
//
// Cost (pipeline algorithm; Pjesivac-Grbovic et al., Performance analysis of MPI collective
// operations, Cluster Computing 10, 2007): p-1 steps; each rank but the root sends S. With m
// segments it takes as long as p-2+m segments.
// Order: not kept, except for the roots 0 and p-1.
// Scratch: S, on ranks inside the chain.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_chain(const Shape& shape);
Cost reduce_chain_cost(const Shape& shape);

}  // namespace sluice
