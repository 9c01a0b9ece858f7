// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for long vectors: each leader of a host reduces one share of the vector
// over its host. Then the leaders of the same share combine theirs, in as many groups at once as
// there are shares, and each sends the result to its host (multi-leader: Bayatpour et al., SC 2017;
// patterns/hosts.h).
//
// A share is cut into a chunk for each host, and its leaders reduce-scatter and allgather the
// chunks: on a ring (`hosts_ring`), or from each host to each at once (`hosts_direct`), which takes
// fewer steps and keeps order. All messages on both levels are chunks, so they are pipelined
// segment by segment. Medium vectors gain nothing from that: in `hosts_bcube` whole shares go to
// leaders and back, and leaders work as in `bcube`, with the fewest messages.
//
// Cost, for h hosts of n ranks each: n-1 steps to the leaders and 1 back, if n > 1, and between
// them 2(h-1), or 2 if direct, or those of bcube. A host sends 2(h-1)/h x S to others, the least
// possible, and each rank 2(p-1)/p x S in all. If hosts have different numbers of ranks, a rank
// that carries c of L shares on a host of s ranks sends (L - c + c (2(h-1)/h + s - 1))/L x S, and a
// rank without a share S.
// Order: hosts_direct and hosts_bcube keep it if each host's ranks are consecutive; hosts_ring does
// not.
// Scratch: hosts_direct takes a chunk for each operand except two, the others none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_hosts_ring(const Shape& shape);
Cost allreduce_hosts_ring_cost(const Shape& shape);
Plan allreduce_hosts_bcube(const Shape& shape);
Cost allreduce_hosts_bcube_cost(const Shape& shape);
Plan allreduce_hosts_direct(const Shape& shape);
Cost allreduce_hosts_direct_cost(const Shape& shape);

}  // namespace sluice
