// SPDX-License-Identifier: BSD-3-Clause
//
// Phases of reductions on two levels whose leaders carry a share each (patterns/hosts.h).
#pragma once

#include <span>

#include "collectives/patterns/hosts.h"
#include "collectives/plan.h"

namespace sluice {

// Reduces each share of input on its leader, in the order of ranks here. Shares go in as many
// chunks as `order` has numbers, in that order. Returns what then holds the sums of the shares that
// this rank carries: input (of the only rank here) or output.
Area reduce_shares(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order);

// Hands out the results, which leaders have in output, chunk by chunk in `order`.
void share_out(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order);

}  // namespace sluice
