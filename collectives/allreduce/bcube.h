// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on a hypercube of several ranks to a side, the idea of gloo's bcube: ranks are numbers
// in a mixed radix, f0 x f1 x
// ... = p (factorize: Shape::radix as often as it divides, then primes). In round i the fi ranks
// that differ in digit i cut what they hold into fi parts, and each gathers and reduces one; the
// rounds backwards spread the results. Radix 2 on a power of two is recursive halving and doubling;
// a prime p, or radix p, is a direct reduce-scatter and a direct allgather.
//
// Cost: 2m steps for m factors (2 logb p where p is a power of the radix b), each of fi - 1
// messages of every rank at once; each rank sends 2(p-1)/p x S (Chan, Heimlich, Purkayastha and van
// de Geijn, Collective communication: theory, practice, and experience, CCPE 19, 2007, for radix 2;
// BlueConnect, Cho et al., MLSys 2019, for mixed ones). Order: kept: digits are taken from the
// least on, so that what is reduced always stands for neighbouring ranks. Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_bcube(const Shape& shape);
Cost allreduce_bcube_cost(const Shape& shape);

}  // namespace sluice
