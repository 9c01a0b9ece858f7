// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoall: block r of each rank's input goes to rank r.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm alltoall_linear;
extern const Algorithm alltoall_pairwise;
extern const Algorithm alltoall_bruck;
extern const Algorithm alltoall_hosts;
extern const Algorithm alltoallv_linear;
extern const Algorithm alltoallv_pairwise;
extern const Algorithm alltoallv_hosts;

}  // namespace sluice
