// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather: every rank gets every rank's block; blocks may differ in size and be empty.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> allgather_algorithms();

}  // namespace sluice
