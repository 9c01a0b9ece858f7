// SPDX-License-Identifier: BSD-3-Clause
//
// Phases that reductions are made of. Each adds this rank's steps to a plan; input is read where
// it is needed first, and never copied.
#pragma once

#include "collectives/patterns/tree.h"
#include "collectives/plan.h"

namespace sluice {

// Reduce-scatter of `operand` on a ring: p-1 steps, in each of which every rank passes a chunk on
// and adds its own operand to the one that it gets; each sends (p-1)/p of it. At the end rank r has
// chunk r of p complete in `total`, which has the size of the operand; the rest of `total` is of no
// use. A chunk's operands are taken round the ring, so their order is not kept (but for two
// ranks).
void ring_reduce_scatter(PlanBuilder& plan, Rank rank, Rank size, const Piece& operand,
                         const Piece& total);

// The way back: rank r has chunk r of `total`, and gets the others round the same ring.
void ring_allgather(PlanBuilder& plan, Rank rank, Rank size, const Piece& total);

// Reduces `operand` (of input) up a tree, in rank order. Sums are gathered in `total`, of the same
// size, which a rank without children does not touch; at a root that is not alone, `total` is the
// result.
void reduce_up(PlanBuilder& plan, const TreeNode& node, const Piece& operand, const Piece& total);

// Reduces input up a tree into the output of its root; elsewhere sums are gathered in scratch.
void reduce_to_root(PlanBuilder& plan, const TreeNode& node);

// Reduces this rank's share of a vector, `own` (no part of a scratch slot), by the balanced tree
// (Bracketing), in `total`, of the same size. The others' operands, one message from each, are
// received all at once into scratch: p-2 slots, or p-1 at the last of an odd number of ranks. For
// at least two ranks.
void reduce_balanced(PlanBuilder& plan, Rank rank, Rank size, const Piece& own, const Piece& total);
// The slots of scratch that it takes, at most.
uint32_t reduce_balanced_slots(Rank size);

// Sends every other rank its chunk of input, those after this rank first, so that not all send to
// the same one at once.
void send_chunks(PlanBuilder& plan, Rank rank, Rank size);

}  // namespace sluice
