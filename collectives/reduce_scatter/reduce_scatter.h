// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter: block r of the inputs is reduced over all ranks onto rank r.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm reduce_scatter_ring;
extern const Algorithm reduce_scatter_recursive_halving;
extern const Algorithm reduce_scatter_direct;
extern const Algorithm reduce_scatter_hosts_ring;
extern const Algorithm reduce_scatter_hosts_direct;

}  // namespace sluice
