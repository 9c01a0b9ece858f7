// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allgather/recursive_doubling.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/allgather/blocks.h"
#include "collectives/patterns/fold.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

// What the core rank `of` has before the round at distance `span`: the blocks of an aligned run of
// `span` core ranks.
std::vector<Piece> run_of(const Shape& shape, const Fold& fold, Rank of, Rank span) {
  const Rank first = of / span * span;
  const Rank begin = fold.first_of(first);
  return gathered_blocks(shape, begin, fold.first_of(first + span) - begin);
}

// The steps of a rank that folds: sends its block, then receives what its neighbour receives.
void be_served(const Shape& shape, const Fold& fold, PlanBuilder& plan) {
  const Rank neighbour = shape.rank + 1;
  const Rank self = fold.to_core(neighbour);
  plan.send(neighbour, all_input);
  plan.recv(neighbour, gathered_block(shape, neighbour));
  for (Rank span = 1; span < fold.core; span *= 2) {
    plan.recv(neighbour, run_of(shape, fold, self ^ span, span));
  }
}

void exchange(const Shape& shape, const Fold& fold, PlanBuilder& plan) {
  const bool serves = fold.absorbs(shape.rank);
  const Rank self = fold.to_core(shape.rank);
  if (serves) {
    plan.recv(shape.rank - 1, gathered_block(shape, shape.rank - 1));
    plan.send(shape.rank - 1, all_input);
  }
  for (Rank span = 1; span < fold.core; span *= 2) {
    const Rank partner = fold.from_core(self ^ span);
    const std::vector<Piece> theirs = run_of(shape, fold, self ^ span, span);
    plan.send(partner, run_of(shape, fold, self, span));
    plan.recv(partner, theirs);
    if (serves) plan.send(shape.rank - 1, theirs);
  }
}

}  // namespace

Plan allgather_recursive_doubling(const Shape& shape) {
  const Fold fold(shape.size);
  PlanBuilder plan(alias_of(Collective::allgather, shape.rank));
  if (fold.folds(shape.rank)) {
    be_served(shape, fold, plan);
  } else {
    exchange(shape, fold, plan);
  }
  keep_own_block(shape, plan);
  return std::move(plan).build();
}

Cost allgather_recursive_doubling_cost(const Shape& shape) {
  const Fold fold(shape.size);
  const double p = shape.size;
  const double rounds = floor_log2(shape.size);
  if (fold.extra() == 0) return {.steps = rounds, .bytes = (p - 1) / p};
  const double steps = rounds + (2 * fold.extra() > fold.core ? 2 : 1);
  double blocks = fold.core - 1 + p - 1;
  for (Rank span = 1; span < fold.core; span *= 2) blocks += std::min(fold.extra(), span);
  return {.steps = steps, .bytes = blocks / p};
}

}  // namespace sluice
