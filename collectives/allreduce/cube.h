// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of `bcube`, `hosts_bcube` and `rabenseifner`: reduce-scatter by the digits of a
// mixed radix, least digit first, and allgather in the same groups backwards.
#pragma once

#include "collectives/patterns/fold.h"
#include "collectives/plan.h"

namespace sluice {

// Adds the steps of `rank`, which is in the core of `fold`. Its operand is in `source`, a piece of
// input or output; partial results and the result go to `total`, of the same size.
void cube_allreduce(PlanBuilder& plan, Rank rank, const Fold& fold, uint32_t radix, Piece source,
                    const Piece& total);

}  // namespace sluice
