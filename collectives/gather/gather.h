// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter: every rank's block reaches the root, or the root's block for each rank
// reaches that rank. Of gatherv and scatterv the root alone knows all lengths, each other rank its
// own: their plans pass no block through a third rank.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm gather_linear;
extern const Algorithm gather_binomial;
extern const Algorithm gather_hosts_linear;
extern const Algorithm gatherv_linear;
extern const Algorithm scatter_linear;
extern const Algorithm scatter_binomial;
extern const Algorithm scatter_hosts_linear;
extern const Algorithm scatterv_linear;

}  // namespace sluice
