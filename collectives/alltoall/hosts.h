// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoall on two levels for short blocks: all blocks from one host to another go in one message.
// On each host one rank gathers the blocks for host k and distributes those from host k, a
// different rank for each k if there are enough (Traeff, Improved MPI all-to-all communication on a
// Giganet SMP cluster, EuroPVM/MPI 2002). Long blocks gain nothing: `linear` sends each once,
// straight to its receiver.
//
// Cost, for h hosts of n ranks each: 3 steps, and h(h-1) messages between hosts instead of p(p-n).
// A host sends n(p-n)/p x S to others, the least possible. A rank that gathers for g of them sends
// n-1 + (h-1-g)n + g n^2 blocks, and g n(n-1) that it distributes. Hosts with different numbers of
// ranks are counted in the same way, host by host.
// Scratch: 2 g n(n-1) blocks, in transit.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan alltoall_hosts(const Shape& shape);
Cost alltoall_hosts_cost(const Shape& shape);

}  // namespace sluice
