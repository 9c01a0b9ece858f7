// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter on two levels for long vectors: the leaders of a share reduce the blocks of some
// ranks of each host (their own alone, where all hosts have as many ranks) for their host, and
// then among the hosts (multi-leader: Bayatpour et al., SC 2017; patterns/hosts.h): round a ring
// (`hosts_ring`), or from each to each at once (`hosts_direct`), in fewer steps and in order.
// Between hosts each block passes once from each host, the least possible, wherever ranks run.
//
// Cost, for h hosts of n ranks each: n-1 steps on them, and h-1 between them, or 1 if direct; each
// rank sends (p-1)/p x S, and each host (h-1)/h x S to others. Where hosts have different numbers
// of ranks, one more step brings blocks to ranks that carry no share, and a rank may send S. Order:
// hosts_direct keeps it where each host's ranks are consecutive, hosts_ring does not. Scratch: the
// blocks that a rank carries but its own, (h-1)/p x S; hosts_direct takes one for each other host's
// operand but one more.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_scatter_hosts_ring(const Shape& shape);
Cost reduce_scatter_hosts_ring_cost(const Shape& shape);
Plan reduce_scatter_hosts_direct(const Shape& shape);
Cost reduce_scatter_hosts_direct_cost(const Shape& shape);

}  // namespace sluice
