// SPDX-License-Identifier: BSD-3-Clause
//
// The core that `bcube` and `rabenseifner` share: reduce-scatter by the digits of a mixed radix,
// the least digit first, and allgather by the same groups backwards.
#pragma once

#include "collectives/patterns/fold.h"
#include "collectives/plan.h"

namespace sluice {

// Adds the steps of `rank`, one of the core of `fold`. Operands are in `source`, of input or
// output; sums and results go to `total`, of the same size.
void cube_allreduce(PlanBuilder& plan, Rank rank, const Fold& fold, uint32_t radix, Piece source,
                    const Piece& total);

}  // namespace sluice
