// SPDX-License-Identifier: BSD-3-Clause
//
// Phases that reductions are made of. Each function adds this rank's steps to a plan. Operands are
// read from input by the first step that needs them, not copied first.
#pragma once

#include "collectives/patterns/tree.h"
#include "collectives/plan.h"

namespace sluice {

// Reduce-scatter of `operand` on a ring: p-1 steps. In each, every rank sends a chunk on and adds
// its own operand to the chunk that it receives; each sends (p-1)/p of the operand. At the end rank
// r has chunk r of p complete in `total`, which has the size of the operand; the rest of `total` is
// garbage. A chunk's operands are combined in ring order, so rank order is not kept (except for two
// ranks).
void ring_reduce_scatter(PlanBuilder& plan, Rank rank, Rank size, const Piece& operand,
                         const Piece& total);

// The way back: rank r has chunk r of `total`, and receives the others on the same ring.
void ring_allgather(PlanBuilder& plan, Rank rank, Rank size, const Piece& total);

// Reduces `operand`, a piece of input, up a tree, in rank order. Partial results go to `total`, of
// the same size, which a rank without children does not touch. At a root that is not alone, `total`
// is the result.
void reduce_up(PlanBuilder& plan, const TreeNode& node, const Piece& operand, const Piece& total);

// Reduces input up a tree into the output of its root; other ranks keep partial results in scratch.
void reduce_to_root(PlanBuilder& plan, const TreeNode& node);

// Reduces this rank's share of a vector, `own` (not part of scratch), by the balanced tree
// (Bracketing), into `total`, of the same size. The other ranks' operands, one message from each,
// are received all at once into scratch: p-2 blocks, or p-1 on the last of an odd number of ranks.
// For at least two ranks.
void reduce_balanced(PlanBuilder& plan, Rank rank, Rank size, const Piece& own, const Piece& total);
// The most blocks of scratch that it takes.
uint32_t reduce_balanced_slots(Rank size);

// Sends every other rank its chunk of input, those after this rank first, so that not all send to
// the same one at once.
void send_chunks(PlanBuilder& plan, Rank rank, Rank size);

}  // namespace sluice
