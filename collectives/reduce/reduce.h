// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce: the operands of all ranks, combined, at the root.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> reduce_algorithms();

}  // namespace sluice
