// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/phases.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

void ring_reduce_scatter(PlanBuilder& plan, Rank rank, Rank size, const Piece& total) {
  const Rank next = next_in_ring(rank, size), previous = previous_in_ring(rank, size);
  Piece passed_on = chunk(Area::input, previous, size);
  for (Rank step = 0; step + 1 < size; ++step) {
    const Piece own = chunk(Area::input, behind(previous, step + 1, size), size);
    const Piece sum{total.area, total.block, own.part};
    plan.send(next, passed_on);
    plan.recv_reduce(previous, own, sum, previous < rank);
    passed_on = sum;
  }
}

void reduce_up(PlanBuilder& plan, const TreeNode& node, const Piece& operand, const Piece& total) {
  Piece sum = operand;
  for (const Subtree& child : node.children) {
    plan.recv_reduce(child.root, sum, total, child.root < node.own.root);
    sum = total;
  }
  if (node.parent != no_rank) plan.send(node.parent, sum);
}

}  // namespace sluice
