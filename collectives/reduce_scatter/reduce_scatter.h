// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter: block r of the inputs is reduced over all ranks onto rank r.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> reduce_scatter_algorithms();

}  // namespace sluice
