// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce: combines the operands of all ranks and gives every rank the result, with the same bits
// on all. Partial results are kept in output, so it is written while the algorithm runs.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> allreduce_algorithms();

}  // namespace sluice
