// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier: all ranks wait for each other; no payload, so the plans are tokens and their order.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> barrier_algorithms();

}  // namespace sluice
