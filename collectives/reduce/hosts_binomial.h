// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce up binomial trees on two levels: on each host to its leader, and from the leaders to the
// root, which is the leader on its own host (hosts_tree; Karonis et al., IPDPS 2000).
//
// Cost, for h hosts of n ranks each: ceil(log2 n) + ceil(log2 h) steps; each rank but the root
// sends S, as does each host but the root's. Hosts with fewer ranks than n need less.
// Order: kept if each host's ranks are consecutive, whatever the root.
// Scratch: S.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_hosts_binomial(const Shape& shape);
Cost reduce_hosts_binomial_cost(const Shape& shape);

}  // namespace sluice
