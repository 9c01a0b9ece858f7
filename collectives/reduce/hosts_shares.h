// SPDX-License-Identifier: BSD-3-Clause
//
// Phases of two-level reductions in which each leader carries a share (patterns/hosts.h).
#pragma once

#include <span>

#include "collectives/patterns/hosts.h"
#include "collectives/plan.h"

namespace sluice {

// Reduces each share of input to its leader, in the order of ranks here. A share goes in as many
// chunks as `order` has numbers, in that order. Returns the area that then holds the sums of this
// rank's shares: input (if it is alone on its host) or output.
Area reduce_shares(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order);

// Leaders send their results, which are in output, to the other ranks here, chunk by chunk in
// `order`.
void share_out(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order);

}  // namespace sluice
