// SPDX-License-Identifier: BSD-3-Clause
//
// Folding: how an algorithm for powers of two serves p ranks (Rabenseifner 2004; Thakur,
// Rabenseifner and Gropp 2005). The core is the 2^k <= p ranks that run the algorithm. Each of the
// p - 2^k other ranks first sends its data to a neighbour in the core, and receives the result from
// it at the end.
//
// Ranks 2i and 2i+1 are paired, for i < p - 2^k: 2i folds into 2i+1. So each core rank stands for a
// run of neighbouring ranks, and the runs are in the order of core ranks. An algorithm that keeps
// rank order still does.
//
//   p = 6:  0 folds into 1, 2 into 3;  core ranks 0..3 are ranks 1 3 4 5, and stand for
//           {0,1} {2,3} {4} {5}
#pragma once

#include <bit>

#include "collectives/plan.h"

namespace sluice {

struct Fold {
  explicit constexpr Fold(Rank ranks) : size(ranks), core(std::bit_floor(ranks)) {}
  // No rank folds: all are in the core.
  static constexpr Fold none(Rank ranks) {
    Fold fold(ranks);
    fold.core = ranks;
    return fold;
  }

  constexpr Rank extra() const { return size - core; }

  // Whether the rank is outside the core; it folds into rank + 1.
  constexpr bool folds(Rank rank) const { return rank < 2 * extra() && rank % 2 == 0; }
  // Whether rank - 1 folds into this rank.
  constexpr bool absorbs(Rank rank) const { return rank < 2 * extra() && rank % 2 == 1; }

  // Of a rank that does not fold: its rank within the core.
  constexpr Rank to_core(Rank rank) const { return rank < 2 * extra() ? rank / 2 : rank - extra(); }
  // The rank of that core rank.
  constexpr Rank from_core(Rank in_core) const {
    return in_core < extra() ? 2 * in_core + 1 : in_core + extra();
  }
  // The run of ranks that a core rank stands for is [first_of(v), first_of(v + 1)).
  constexpr Rank first_of(Rank in_core) const {
    return in_core < extra() ? 2 * in_core : in_core + extra();
  }

  Rank size;  // p
  Rank core;  // ranks that do not fold
};

}  // namespace sluice
