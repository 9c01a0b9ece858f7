// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on a cube with several ranks to a side, the idea of gloo's bcube: ranks are numbers in
// a mixed radix, p = f1 x f2 x ... x fm (factorize: Shape::radix as often as it divides, then
// primes). In round i the fi ranks that differ in digit i alone cut what they hold into fi parts,
// of which each collects and reduces one; the rounds backwards spread the results. Radix 2 on a
// power of two is recursive halving and doubling; a prime p, or radix p, is a direct
// reduce-scatter and a direct allgather.
//
// Cost (Chan, Heimlich, Purkayastha and van de Geijn, Collective communication: theory, practice,
// and experience, CCPE 19, 2007, for radix 2; Cho et al., BlueConnect, MLSys 2019, for mixed
// radices): f1 + f2 + ... + fm steps: fi - 1 of round i on the way there, because a rank takes the
// operands that it reduces one after another, and 1 on the way back, in which fi - 1 messages go
// at once. That is 2 log2 p for powers of two with radix 2. Each rank sends 2(p-1)/p x S.
// Order: kept: the first digit is that of neighbours, so what is reduced always is of a run of
// ranks.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_bcube(const Shape& shape);
Cost allreduce_bcube_cost(const Shape& shape);

}  // namespace sluice
