// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on two levels for long blocks: each leader of a host sends the blocks of some of its
// host's ranks (only its own, if all hosts have as many ranks) to the leaders of the same share on
// the other hosts, and forwards what it receives from them to its host (multi-leader: Kandalla,
// Subramoni, Santhanaraman, Koop and Panda, Designing multi-leader-based allgather algorithms for
// multi-core clusters, IPDPS 2009).
//
// Between hosts blocks go round a ring, in both directions, as in `ring` (`hosts_ring`), or from
// each host to each at once (`hosts_direct`), in fewer steps. Each block goes to each other host
// once, the least possible.
//
// Cost, for h hosts of n ranks each: floor(h/2) steps between hosts, or 1 if direct, and 1 more
// inside hosts if n > 1; each rank sends (p-1)/p x S, and each host (h-1)/h x S to others. If hosts
// have different numbers of ranks, one more step brings blocks to leaders, and a rank that carries
// c of L shares on a host of s ranks sends at most (h-1 + h(s-1)) c ceil(n/L)/p x S, with n the
// most ranks of a host.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_hosts_ring(const Shape& shape);
Cost allgather_hosts_ring_cost(const Shape& shape);
Plan allgather_hosts_direct(const Shape& shape);
Cost allgather_hosts_direct_cost(const Shape& shape);

}  // namespace sluice
