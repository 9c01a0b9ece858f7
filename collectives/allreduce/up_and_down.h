// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of tree algorithms: reduces up a tree and broadcasts down again.
#pragma once

#include "collectives/patterns/tree.h"
#include "collectives/plan.h"

namespace sluice {

// Adds this rank's steps for one part of input and the same part of output. For trees of at least
// two ranks.
void up_and_down(PlanBuilder& plan, const TreeNode& node, const Part& part);

}  // namespace sluice
