// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoall on two levels for short blocks: all blocks from one host to another go in one message.
// On each host one rank gathers what goes to host k, a different one for each k where there are
// enough (Traeff, Improved MPI all-to-all communication on a Giganet SMP cluster, EuroPVM/MPI
// 2002), and one hands out what comes from there. Long blocks gain nothing: `linear` sends each
// once, straight to where it belongs.
//
// Cost, for h hosts of n ranks each: 3 steps, and h(h-1) messages between hosts instead of p(p-n).
// A host sends n(p-n)/p x S to others, as it must; a rank that gathers for g of them sends n-1 +
// (h-1-g)n + g n^2 blocks, and g n(n-1) that it hands out. Hosts with different numbers of ranks
// follow the same count, host by host.
// Scratch: 2 g n(n-1) blocks, on their way.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan alltoall_hosts(const Shape& shape);
Cost alltoall_hosts_cost(const Shape& shape);

}  // namespace sluice
