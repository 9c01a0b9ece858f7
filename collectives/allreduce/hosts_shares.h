// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for long vectors: each leader of a host reduces one share of the vector
// for its host; leaders of the same share meet, as many groups as there are leaders at once; and
// each hands its share out on its host (multi-leader: Bayatpour et al., SC 2017; patterns/hosts.h).
//
// Shares are cut into a chunk for each host, and leaders reduce-scatter and allgather these: round
// a ring (`hosts_ring`), or each to each at once (`hosts_direct`), which takes fewer steps and
// keeps order. All messages are chunks, on all levels, so that they follow each other segment by
// segment. Medium vectors have no use for that: in `hosts_bcube` shares go whole to leaders and
// back, and leaders go about the hosts as `bcube` does, in the fewest messages.
//
// Cost, for h hosts of n ranks each: n-1 steps to the leaders and 1 back, if n > 1, and between
// them 2(h-1), or 2 if direct, or those of bcube. A host sends 2(h-1)/h x S to others, the least
// possible, and each rank 2(p-1)/p x S in all. Where hosts have different numbers of ranks, who
// carries c of L shares on a host of s ranks sends (L - c + c (2(h-1)/h + s - 1))/L x S, and who
// carries none, S.
// Order: hosts_direct and hosts_bcube keep it where each host's ranks are consecutive, hosts_ring
// does not.
// Scratch: hosts_direct takes a chunk for each operand but two, the others none.
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
