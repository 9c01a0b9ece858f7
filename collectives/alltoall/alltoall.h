// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoall: block r of each rank's input goes to rank r.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> alltoall_algorithms();

}  // namespace sluice
