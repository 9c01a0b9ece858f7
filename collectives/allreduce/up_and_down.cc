// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/up_and_down.h"

#include "collectives/reduce/phases.h"

namespace sluice {

void up_and_down(PlanBuilder& plan, const TreeNode& node, const Part& part) {
  const Piece result{Area::output, whole, part};
  reduce_up(plan, node, {Area::input, whole, part}, result);
  if (node.parent != no_rank) plan.recv(node.parent, result);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, result);
  }
}

}  // namespace sluice
