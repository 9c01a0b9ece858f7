// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast from rank to rank: each forwards a segment while it receives the next. Long vectors
// reach every rank at the speed of one link.
//
// Cost (Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel and Dongarra, Performance analysis of
// MPI collective operations, Cluster Computing 10, 2007): p-1 steps, p-2 + n of n segments; each
// rank sends S.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_chain(const Shape& shape);
Cost broadcast_chain_cost(const Shape& shape);

}  // namespace sluice
