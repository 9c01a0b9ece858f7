// SPDX-License-Identifier: BSD-3-Clause
//
// What the proof tries: ranks, roots, radixes and numbers of elements around every boundary. With
// CHECK_LONG=1 (make check-long) more of each.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model/model.h"

namespace sluice {

bool long_check();

// Numbers of ranks that are proved in one go, under one watchdog: every one up to 33, and larger
// ones.
struct Sizes {
  Rank first, last;
  std::vector<Rank> all;
};
std::vector<Sizes> size_groups();

// All roots where there are few ranks, else the edges and one or two in between.
std::vector<Rank> roots(const Algorithm& algorithm, Rank size, std::mt19937_64& random);

// The radixes that make a difference to the algorithm.
std::vector<uint32_t> radixes(const Algorithm& algorithm, Shape shape);

// What ranks may be placed on, as in Shape: for algorithms that look at hosts, some that they can
// serve; for the others nothing.
std::vector<std::vector<uint32_t>> placements(const Algorithm& algorithm, Rank size,
                                              std::mt19937_64& random);
// "0 0 1 1 2"
std::string host_list(std::span<const uint32_t> hosts);

// Equal blocks, or vectors: none, one, fewer than ranks, as many, not divisible.
std::vector<Counts> equal_counts(Collective collective, Rank size);

// Blocks of different sizes, some empty; none for the collectives and algorithms that have none.
std::vector<Counts> ragged_counts(const Algorithm& algorithm, Rank size, std::mt19937_64& random);

}  // namespace sluice
