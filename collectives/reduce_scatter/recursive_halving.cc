// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce_scatter/recursive_halving.h"

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

}  // namespace

Plan reduce_scatter_recursive_halving(const Shape& shape) {
  if (shape.size == 1) {
    PlanBuilder plan;
    plan.copy(Piece{Area::input, 0, {}}, all_output);
    return std::move(plan).build();
  }
  return Fold(shape.size).folds(shape.rank) ? folded(shape) : Halving(shape).plan();
}

Cost reduce_scatter_recursive_halving_cost(const Shape& shape) {
  const double p = shape.size;
  const double rounds = floor_log2(shape.size);
  if (Fold(shape.size).extra() > 0) {
    return {.steps = rounds + 2, .bytes = 1, .scratch = (p - 1) / p};
  }
  return {.steps = rounds, .bytes = (p - 1) / p, .scratch = std::max(0.0, (p / 2 - 1) / p)};
}

}  // namespace sluice
