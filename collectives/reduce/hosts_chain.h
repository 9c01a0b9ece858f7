// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce on two levels for long vectors: each leader of a host reduces one share of the vector over
// its host. Each share goes from host to host towards the root's host, segment by segment, where
// the leaders send their shares to the root (multi-leader: Bayatpour et al., SC 2017; the chain as
// in `chain`).
//
// Cost, for h hosts of n ranks each: n-1 steps to the leaders, h-1 between hosts, and 1 to the root
// if n > 1. Each rank but the root sends S, and each host but the root's sends S to another, the
// least that can reach the root. Hosts with fewer ranks than n need less.
// Order: not kept.
// Scratch: S/s, with s ranks on the smallest host.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_hosts_chain(const Shape& shape);
Cost reduce_hosts_chain_cost(const Shape& shape);

}  // namespace sluice
