// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce in which every rank reduces one chunk of the vector: all ranks send it their part at
// once, it combines them by the balanced tree (Bracketing), and sends the result to all. It sends
// as few bytes as a ring, and gives the same bits as other algorithms with that bracketing.
//
// Cost (the direct algorithms of Chan, Heimlich, Purkayastha and van de Geijn, Collective
// communication: theory, practice, and experience, CCPE 19, 2007): 2 steps, of p-1 messages at
// once; each rank sends 2(p-1)/p x S.
// Order: kept. Scratch: (p-2)/p x S, or (p-1)/p x S on the last of an odd number of ranks.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_direct(const Shape& shape);
Cost allreduce_direct_cost(const Shape& shape);

}  // namespace sluice
