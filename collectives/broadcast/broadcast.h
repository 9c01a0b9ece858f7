// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast: the root's vector reaches every rank, in Area::output, on the root too.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm broadcast_one_to_all;
extern const Algorithm broadcast_binomial;
extern const Algorithm broadcast_chain;
extern const Algorithm broadcast_scatter_allgather;
extern const Algorithm broadcast_hosts_binomial;
extern const Algorithm broadcast_hosts_chain;

}  // namespace sluice
