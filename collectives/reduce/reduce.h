// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce: the operands of all ranks, combined, at the root.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm reduce_ring;
extern const Algorithm reduce_chain;
extern const Algorithm reduce_binomial;
extern const Algorithm reduce_direct;
extern const Algorithm reduce_hosts_binomial;
extern const Algorithm reduce_hosts_chain;

}  // namespace sluice
