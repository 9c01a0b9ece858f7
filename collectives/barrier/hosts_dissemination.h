// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier on two levels: tokens to one leader a host, `dissemination` among the leaders, tokens
// back.
//
// Cost, for h hosts, one of them with several ranks: 2 + ceil(log2 h) steps. Of the tokens, h
// ceil(log2 h) go between hosts.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan barrier_hosts_dissemination(const Shape& shape);
Cost barrier_hosts_dissemination_cost(const Shape& shape);

}  // namespace sluice
