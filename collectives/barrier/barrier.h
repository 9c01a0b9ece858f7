// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier: no rank leaves before all have entered. No payload, so plans are tokens and their order.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> barrier_algorithms();

}  // namespace sluice
