// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as numbers in a mixed radix: p = f0 * f1 * ... and rank = d0 + d1*f0 + d2*f0*f1 + ...,
// so that ranks that differ in the first digit only are neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/plan.h"

namespace sluice {

// The factors of `size`: `radix` as often as it divides, then the primes of the rest, ascending.
// Empty for 1. A radix below 2 divides nothing.
//
//   size 12: radix 2 -> 2 2 3, radix 4 -> 4 3, radix 5 -> 2 2 3;   size 7, radix 2 -> 7
std::vector<uint32_t> factorize(Rank size, uint32_t radix);

// One digit of a rank. Ranks that differ only in this digit form a group of `radix` ranks, `stride`
// apart.
struct Digit {
  uint32_t radix;
  Rank stride;

  constexpr uint32_t of(Rank rank) const { return rank / stride % radix; }
  // The rank of the same group whose digit is `value`.
  constexpr Rank with(Rank rank, uint32_t value) const {
    return rank + value * stride - of(rank) * stride;
  }
};

// All digits, least significant (stride 1) first.
std::vector<Digit> digits_of(Rank size, uint32_t radix);

}  // namespace sluice
