// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce: the operands of all ranks, combined, on every rank; the same bits on all of them.
// Output is where sums are gathered, so it is written while the algorithm runs.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> allreduce_algorithms();

}  // namespace sluice
