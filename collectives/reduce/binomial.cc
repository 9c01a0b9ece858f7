// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce up a binomial tree.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): ceil(log2 p) steps; each rank but the root sends S.
// Order: kept, whatever the root: each subtree is a run of ranks (binomial_tree).
// Scratch: S, on ranks inside the tree.
#include "collectives/reduce/reduce.h"

#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  reduce_to_root(plan, binomial_tree(shape.rank, shape.size, shape.root));
  return std::move(plan).build();
}

Cost binomial_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = static_cast<double>(ceil_log2(shape.size)),
          .bytes = 1,
          .scratch = shape.size > 2 ? 1.0 : 0.0};
}

}  // namespace

constexpr Algorithm reduce_binomial = {
    .collective = Collective::reduce,
    .name = "binomial",
    .help = "binomial tree, in rank order: small messages",
    .plan = plan_binomial,
    .cost = binomial_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
