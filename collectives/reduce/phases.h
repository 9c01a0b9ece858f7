// SPDX-License-Identifier: BSD-3-Clause
//
// Phases that reductions are made of. Each adds this rank's steps to a plan; input is read where
// it is needed first, and never copied.
#pragma once

#include "collectives/patterns/tree.h"
#include "collectives/plan.h"

namespace sluice {

// Reduce-scatter on a ring: p-1 steps, in each of which every rank passes a chunk on and adds its
// own operand to the one that it gets; each sends (p-1)/p of a vector. At the end rank r has chunk
// r of p complete in `total`, which has the size of the whole vector; the rest of `total` is of no
// use. A chunk's operands are taken round the ring, so their order is not kept (but for two
// ranks).
void ring_reduce_scatter(PlanBuilder& plan, Rank rank, Rank size, const Piece& total);

// Reduces `operand` (of input) up a tree, in rank order. Sums are gathered in `total`, of the same
// size, which a rank without children does not touch; at a root that is not alone, `total` is the
// result.
void reduce_up(PlanBuilder& plan, const TreeNode& node, const Piece& operand, const Piece& total);

}  // namespace sluice
