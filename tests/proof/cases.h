// SPDX-License-Identifier: BSD-3-Clause
//
// The cases that the proof tries: ranks, roots, radixes and numbers of elements around every
// boundary. CHECK_LONG=1 (make check-long) adds more of each.
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

// Numbers of ranks proved in one test, under one watchdog: many up to 33 (in `make check-long`
// all), and larger ones.
struct Sizes {
  Rank first, last;
  std::vector<Rank> all;
};
std::vector<Sizes> size_groups();

// All roots if there are few ranks; otherwise rank 0, a random one, and up to 33 ranks also 1 and
// the last.
std::vector<Rank> roots(const Algorithm& algorithm, Rank size, std::mt19937_64& random);

// Radixes that give different plans.
std::vector<uint32_t> radixes(const Algorithm& algorithm, Shape shape);

// Placements of ranks on hosts, as in Shape: for algorithms that need hosts, some that they accept;
// for others one empty placement.
std::vector<std::vector<uint32_t>> placements(const Algorithm& algorithm, Rank size,
                                              std::mt19937_64& random);
// "0 0 1 1 2"
std::string host_list(std::span<const uint32_t> hosts);

// Equal blocks, or vectors: 0 elements, 1, fewer than ranks, as many, not divisible by ranks.
std::vector<Counts> equal_counts(Collective collective, Rank size);

// Blocks of different sizes, some empty; no counts if the collective or algorithm has none.
std::vector<Counts> ragged_counts(const Algorithm& algorithm, Rank size, std::mt19937_64& random);

}  // namespace sluice
