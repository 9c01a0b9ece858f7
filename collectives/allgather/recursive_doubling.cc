// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather by recursive doubling: partners at distance 1, 2, 4 ... exchange all blocks that they
// have. If p is not a power of two, r = p - 2^k ranks fold into a neighbour (Fold): they send it
// their block first, and it forwards to them what it receives, round by round, while the next round
// runs.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): with k = floor(log2 p), if r = 0, k steps, and each rank sends (p-1)/p x
// S. Otherwise k + 2 steps, or k + 1 if r <= 2^(k-1), because then no block that was folded in
// reaches a rank that folds in the last round. Rank 1 sends most: it forwards p-1 blocks, and in
// round i < k sends those of 2^i core ranks, min(r, 2^i) of which stand for two:
// (2^k - 1 + min(r, 1) + min(r, 2) + min(r, 4) + ... + min(r, 2^(k-1)) + p-1)/p x S.
// Scratch: none.
#include "collectives/allgather/allgather.h"

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

Plan plan_recursive_doubling(const Shape& shape) {
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

Cost recursive_doubling_cost(const Shape& shape) {
  const Fold fold(shape.size);
  const double p = shape.size;
  const double rounds = floor_log2(shape.size);
  if (fold.extra() == 0) return {.steps = rounds, .bytes = (p - 1) / p};
  const double steps = rounds + (2 * fold.extra() > fold.core ? 2 : 1);
  double blocks = fold.core - 1 + p - 1;
  for (Rank span = 1; span < fold.core; span *= 2) blocks += std::min(fold.extra(), span);
  return {.steps = steps, .bytes = blocks / p};
}

}  // namespace

constexpr Algorithm allgather_recursive_doubling = {
    .collective = Collective::allgather,
    .name = "recursive_doubling",
    .help = "log2 p exchanges of all that each has: short blocks, powers of two",
    .plan = plan_recursive_doubling,
    .cost = recursive_doubling_cost,
};

constexpr Algorithm allgatherv_recursive_doubling =
    serving(Collective::allgatherv, allgather_recursive_doubling);

}  // namespace sluice
