// SPDX-License-Identifier: BSD-3-Clause
//
// Logarithms to base 2 of numbers of ranks.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice {

// n >= 1. The largest k with 2^k <= n.
constexpr uint32_t floor_log2(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n)) - 1; }

// n >= 1. The smallest k with 2^k >= n.
constexpr uint32_t ceil_log2(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n - 1)); }

}  // namespace sluice
