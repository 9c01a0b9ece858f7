// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather: every rank gets every rank's block; blocks may differ in size and be empty.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm allgather_ring;
extern const Algorithm allgather_bruck;
extern const Algorithm allgather_recursive_doubling;
extern const Algorithm allgather_hosts_bruck;
extern const Algorithm allgather_hosts_ring;
extern const Algorithm allgather_hosts_direct;
extern const Algorithm allgatherv_ring;
extern const Algorithm allgatherv_bruck;
extern const Algorithm allgatherv_recursive_doubling;
extern const Algorithm allgatherv_hosts_bruck;
extern const Algorithm allgatherv_hosts_ring;
extern const Algorithm allgatherv_hosts_direct;

}  // namespace sluice
