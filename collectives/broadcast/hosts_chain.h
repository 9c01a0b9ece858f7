// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast on two levels for long vectors: the root sends each leader of its host a share of the
// vector. Each share goes from host to host, segment by segment, and on each host from its leader
// to the other ranks (multi-leader: Bayatpour et al., SC 2017; the chain as in `chain`).
//
// Cost, for h hosts of n ranks each: h-1 steps between hosts, and 2 inside hosts if n > 1. A host
// sends S to another, the least possible; a root that carries c of L shares sends (L + c (n - 1))/L
// x S, and no rank more. Hosts with fewer ranks than n need fewer steps.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_hosts_chain(const Shape& shape);
Cost broadcast_hosts_chain_cost(const Shape& shape);

}  // namespace sluice
