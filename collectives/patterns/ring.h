// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as a ring: arithmetic modulo their number. For 0 <= rank, by < size < 2^31.
//
// Also for rotation: with root r, the virtual rank of a rank is behind(rank, r, size), and the rank
// of a virtual one is ahead(virtual, r, size).
#pragma once

#include "collectives/plan.h"

namespace sluice {

// The rank `by` places further on.
constexpr Rank ahead(Rank rank, Rank by, Rank size) {
  const Rank sum = rank + by;
  return sum < size ? sum : sum - size;
}

// The rank `by` places back.
constexpr Rank behind(Rank rank, Rank by, Rank size) {
  return rank >= by ? rank - by : rank + size - by;
}

// The neighbours of a ring of at least two.
constexpr Rank next_in_ring(Rank rank, Rank size) { return ahead(rank, 1, size); }
constexpr Rank previous_in_ring(Rank rank, Rank size) { return behind(rank, 1, size); }

}  // namespace sluice
