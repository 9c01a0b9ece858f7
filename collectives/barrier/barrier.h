// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier: no rank leaves before all have entered. No payload, so plans are tokens and their order.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm barrier_dissemination;
extern const Algorithm barrier_all_to_all;
extern const Algorithm barrier_hosts_dissemination;
extern const Algorithm barrier_all_to_one;

}  // namespace sluice
