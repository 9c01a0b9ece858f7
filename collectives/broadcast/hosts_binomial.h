// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast down binomial trees on two levels: from the root to a leader on each host, and from
// those to the ranks of their hosts (hosts_tree; Karonis et al., IPDPS 2000).
//
// Cost, for h hosts of n ranks each: as `binomial` among h, and floor(log2 n) more steps, as
// messages to several children go at once. A rank sends S to each child. Hosts with fewer ranks
// than n need less.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_hosts_binomial(const Shape& shape);
Cost broadcast_hosts_binomial_cost(const Shape& shape);

}  // namespace sluice
