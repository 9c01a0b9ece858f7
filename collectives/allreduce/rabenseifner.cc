// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by Rabenseifner's algorithm: reduce-scatter by halving vectors and doubling distances,
// then allgather by the same exchanges backwards. Ranks beyond a power of two fold into a neighbour
// first (Fold), and receive the result from it at the end.
//
// Cost (Rabenseifner, Optimization of collective reduction operations, ICCS 2004; Thakur,
// Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19,
// 2005): 2 log2 p steps; each rank sends 2(p-1)/p x S. If p is not a power of two, with c =
// 2^floor(log2 p): 2 log2 c + 2 steps and (2(c-1)/c + 1) x S.
// Order: kept: distances double, so a partial result always stands for a run of ranks.
// Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include "collectives/allreduce/cube.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

Plan plan_rabenseifner(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const Fold fold(shape.size);
  constexpr uint32_t radix = 2;
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else if (fold.folds(shape.rank)) {
    plan.send(shape.rank + 1, all_input);
    plan.recv(shape.rank + 1, all_output);
  } else if (fold.absorbs(shape.rank)) {
    plan.recv_reduce(shape.rank - 1, all_input, all_output, true);
    cube_allreduce(plan, shape.rank, fold, radix, all_output, all_output);
    plan.send(shape.rank - 1, all_output);
  } else {
    cube_allreduce(plan, shape.rank, fold, radix, all_input, all_output);
  }
  return std::move(plan).build();
}

Cost rabenseifner_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Fold fold(shape.size);
  const double c = fold.core;
  const bool folds = fold.extra() > 0;
  return {.steps = 2 * floor_log2(shape.size) + (folds ? 2.0 : 0.0),
          .bytes = 2 * (c - 1) / c + (folds ? 1 : 0)};
}

}  // namespace

constexpr Algorithm allreduce_rabenseifner = {
    .collective = Collective::allreduce,
    .name = "rabenseifner",
    .help = "halving and doubling: medium messages, powers of two",
    .plan = plan_rabenseifner,
    .cost = rabenseifner_cost,
    .bracketing = Bracketing::balanced_on_powers_of_two,
};

}  // namespace sluice
