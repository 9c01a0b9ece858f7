// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter on two levels for long vectors: the leaders of a share reduce the blocks of some
// ranks of each host (only their own, if all hosts have as many ranks) over their host, and then
// among the hosts (multi-leader: Bayatpour et al., SC 2017; patterns/hosts.h): on a ring
// (`hosts_ring`), or from each host to each at once (`hosts_direct`), in fewer steps and in order.
// Each host sends each block to other hosts once, the least possible, however ranks are placed.
//
// Cost, for h hosts of n ranks each: n-1 steps inside hosts, and h-1 between them, or 1 if direct;
// each rank sends (p-1)/p x S, and each host (h-1)/h x S to others. If hosts have different numbers
// of ranks, one more step brings blocks to ranks without a share, and a rank may send S.
// Order: hosts_direct keeps it if each host's ranks are consecutive; hosts_ring does not.
// Scratch: the blocks that a rank carries except its own, (h-1)/p x S; for hosts_direct one more
// for each other host's operand except one.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_hosts_ring(const Shape& shape);
Cost reduce_scatter_hosts_ring_cost(const Shape& shape);
Plan reduce_scatter_hosts_direct(const Shape& shape);
Cost reduce_scatter_hosts_direct_cost(const Shape& shape);

}  // namespace sluice
