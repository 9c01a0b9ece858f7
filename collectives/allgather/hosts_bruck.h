// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on two levels for short blocks: ranks send their blocks to one leader a host, the
// leaders exchange them as in `bruck`, with all blocks of a host in one message, and each leader
// sends them on to its host (two-level: Mamidala et al., EuroPVM/MPI 2006).
//
// Cost, for h hosts of n ranks each: the steps of bruck among h ranks, and 2 more if n > 1. A
// leader sends (p-n)/p x S to other hosts, the least possible, and (n-1)(p-1)/p x S on its own
// host. If hosts have different numbers of ranks these are bounds, with n the most ranks of a host.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allgather_hosts_bruck(const Shape& shape);
Cost allgather_hosts_bruck_cost(const Shape& shape);

}  // namespace sluice
