// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce in which every rank reduces one chunk of the vector: all ranks send it their part at once,
// it combines them by the balanced tree (Bracketing), and sends the result to the root.
//
// Cost (a direct reduce-scatter and gather; Chan, Heimlich, Purkayastha and van de Geijn,
// Collective communication: theory, practice, and experience, CCPE 19, 2007): 2 steps, of p-1
// messages at once; each rank sends S, the root (p-1)/p x S.
// Order: kept, whatever the root. Scratch: (p-1)/p x S, or S on the last of an odd number of ranks:
// for the operands of a chunk and, except on the root, its result.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan reduce_direct(const Shape& shape);
Cost reduce_direct_cost(const Shape& shape);

}  // namespace sluice
