// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter by recursive halving at doubling distance: partners at distance 1, 2, 4 ... each
// send half of the blocks that they still have partial results of, and reduce the other half. At
// distance d a rank keeps the blocks of the ranks that are equal to it modulo 2d. If p is not a
// power of two, r = p - 2^k ranks fold into a neighbour (Fold): they send it their whole input
// first, and receive their block from it at the end.
//
// Halving usually starts at the largest distance, so that a rank keeps one run of blocks, but then
// operands are not combined in order. At doubling distance a partial result always stands for a run
// of ranks, and the partner's for the run next to it, and the most data goes to the nearest rank.
// Strided blocks cost nothing, because messages are gathered anyway.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): with k = floor(log2 p), if r = 0, k steps, and each rank sends (p-1)/p x
// S; otherwise k + 2 steps, and ranks that fold send S.
// Order: kept. Scratch: (p-1)/p x S; if r = 0, half of the blocks except this rank's own, (p/2-1)/p
// x S. The partial result of a rank's own block is always in the output.
#include "collectives/reduce_scatter/reduce_scatter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/fold.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce_scatter/partials.h"

namespace sluice {

namespace {

// The plan of a rank that folds.
Plan folded(const Shape& shape) {
  std::vector<Piece> operands;
  for (Rank block = 0; block < shape.size; ++block) operands.push_back({Area::input, block, {}});
  PlanBuilder plan;
  plan.send(shape.rank + 1, operands);
  plan.recv(shape.rank + 1, all_output);
  return std::move(plan).build();
}

// The plan of a core rank.
class Halving {
 public:
  explicit Halving(const Shape& shape)
      : shape_(shape), fold_(shape.size), self_(fold_.to_core(shape.rank)) {}

  Plan plan() && {
    const bool absorbs = fold_.absorbs(shape_.rank);
    if (absorbs) partials_.reduce_onto(shape_.rank - 1, blocks_of(0, 1), true);
    for (Rank distance = 1; distance < fold_.core; distance *= 2) {
      const Rank partner = self_ ^ distance;
      plan_.send(fold_.from_core(partner), partials_.of(blocks_of(partner, 2 * distance)));
      partials_.reduce_onto(fold_.from_core(partner), blocks_of(self_, 2 * distance),
                            partner < self_);
    }
    if (absorbs) plan_.send(shape_.rank - 1, partials_.of(shape_.rank - 1));
    return std::move(plan_).build();
  }

 private:
  // The blocks of all core ranks that are `of` modulo `stride`, and of ranks that folded into them.
  std::vector<Rank> blocks_of(Rank of, Rank stride) const {
    std::vector<Rank> blocks;
    for (Rank owner = of % stride; owner < fold_.core; owner += stride) {
      for (Rank r = fold_.first_of(owner); r < fold_.first_of(owner + 1); ++r) blocks.push_back(r);
    }
    return blocks;
  }

  const Shape& shape_;
  const Fold fold_;
  const Rank self_;
  PlanBuilder plan_;
  Partials partials_{shape_, plan_};
};

Plan plan_recursive_halving(const Shape& shape) {
  if (shape.size == 1) {
    PlanBuilder plan;
    plan.copy(Piece{Area::input, 0, {}}, all_output);
    return std::move(plan).build();
  }
  return Fold(shape.size).folds(shape.rank) ? folded(shape) : Halving(shape).plan();
}

Cost recursive_halving_cost(const Shape& shape) {
  const double p = shape.size;
  const double rounds = floor_log2(shape.size);
  if (Fold(shape.size).extra() > 0) {
    return {.steps = rounds + 2, .bytes = 1, .scratch = (p - 1) / p};
  }
  return {.steps = rounds, .bytes = (p - 1) / p, .scratch = std::max(0.0, (p / 2 - 1) / p)};
}

}  // namespace

constexpr Algorithm reduce_scatter_recursive_halving = {
    .collective = Collective::reduce_scatter,
    .name = "recursive_halving",
    .help = "log2 p exchanges of half of what is left: short vectors",
    .plan = plan_recursive_halving,
    .cost = recursive_halving_cost,
    .bracketing = Bracketing::balanced_on_powers_of_two,
};

}  // namespace sluice
