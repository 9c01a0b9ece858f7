// SPDX-License-Identifier: BSD-3-Clause
//
// What the proof tries: ranks, roots, radixes and numbers of elements around every boundary. With
// CHECK_LONG=1 (make check-long) more of each.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model.h"

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
std::vector<uint32_t> radixes(const Algorithm& algorithm, Rank size, Rank root);

// Equal blocks, or vectors: none, one, fewer than ranks, as many, not divisible.
std::vector<Counts> equal_counts(Collective collective, Rank size);

// Blocks of different sizes, some empty; none for the collectives and algorithms that have none.
std::vector<Counts> ragged_counts(const Algorithm& algorithm, Rank size, std::mt19937_64& random);

}  // namespace sluice
