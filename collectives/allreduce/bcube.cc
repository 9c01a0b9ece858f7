// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on a cube with several ranks to a side, the idea of gloo's bcube. Ranks are numbers in
// a mixed radix, p = f1 x f2 x ... x fm (factorize: Shape::radix as often as it divides, then
// primes). In round i, the fi ranks that differ only in digit i cut what they hold into fi parts,
// and each receives and reduces one part; the same rounds backwards spread the results. With radix
// 2 and a power of two this is recursive halving and doubling; with a prime p, or radix p, a direct
// reduce-scatter and a direct allgather.
//
// Cost (Chan, Heimlich, Purkayastha and van de Geijn, Collective communication: theory, practice,
// and experience, CCPE 19, 2007, for radix 2; Cho et al., BlueConnect, MLSys 2019, for mixed
// radices): f1 + f2 + ... + fm steps. Round i takes fi - 1 on the way there, because a rank adds
// the operands one after another, and 1 on the way back, where fi - 1 messages go at once. That is
// 2 log2 p for powers of two with radix 2. Each rank sends 2(p-1)/p x S.
// Order: kept: ranks that differ in the first digit are neighbours, so a partial result always
// stands for a run of ranks.
// Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include "collectives/allreduce/cube.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/radix.h"

namespace sluice {

namespace {

Plan plan_bcube(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) plan.copy(all_input, all_output);
  cube_allreduce(plan, shape.rank, Fold::none(shape.size), shape.radix, all_input, all_output);
  return std::move(plan).build();
}

Cost bcube_cost(const Shape& shape) {
  const double p = shape.size;
  double steps = 0;
  for (const uint32_t factor : factorize(shape.size, shape.radix)) steps += factor;
  return {.steps = steps, .bytes = 2 * (p - 1) / p};
}

}  // namespace

constexpr Algorithm allreduce_bcube = {
    .collective = Collective::allreduce,
    .name = "bcube",
    .help = "reduce-scatter and allgather by digits of a radix: medium and large messages",
    .plan = plan_bcube,
    .cost = bcube_cost,
};

}  // namespace sluice
