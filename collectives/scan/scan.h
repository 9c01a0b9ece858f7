// SPDX-License-Identifier: BSD-3-Clause
//
// Scan and exscan: rank r's result combines the operands of ranks 0 to r (scan), or 0 to r - 1
// (exscan, which leaves rank 0 without one), in this order.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm scan_doubling;
extern const Algorithm scan_chain;
extern const Algorithm scan_hosts_doubling;
extern const Algorithm exscan_doubling;
extern const Algorithm exscan_chain;
extern const Algorithm exscan_hosts_doubling;

}  // namespace sluice
