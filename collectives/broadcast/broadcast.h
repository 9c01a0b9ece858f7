// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast: the root's vector reaches every rank, in Area::output, on the root too.
#pragma once

#include <span>

#include "collectives/algorithm.h"

namespace sluice {

std::span<const Algorithm> broadcast_algorithms();

}  // namespace sluice
