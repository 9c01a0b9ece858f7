// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on one tree: reduces up to its root, and broadcasts down again. Segments are pipelined:
// the first go down while later ones still come up.
//
// The tree is in_order_tree with Shape::radix. 2 is the default, and what NCCL uses between hosts:
// a rank inside a tree of radix k moves k+1 vectors in and out, so 2 needs the least bandwidth of
// all trees of logarithmic depth (a binomial tree's root would move log2 p vectors). A larger radix
// is flatter; radix 1 is a chain up and down.
//
// Cost (Sanders, Speck and Traeff 2009, see double_tree.cc, on pipelined binary trees): k d steps
// up in a complete tree of radix k and depth d, because a rank receives its operands one after
// another, and d steps down; in general in_order_rounds + in_order_depth. A rank sends S up and S
// to each child: (k+1) x S.
// Order: kept.
// Scratch: none.
#include "collectives/allreduce/allreduce.h"

#include <algorithm>

#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"

namespace sluice {

namespace {

Plan plan_tree(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    up_and_down(plan, in_order_tree(shape.rank, shape.size, shape.radix), Part{});
  }
  return std::move(plan).build();
}

Cost tree_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const Rank others = shape.size - 1;
  const Rank of_root = std::clamp(shape.radix, 1u, others);
  const Rank below = (others + of_root - 1) / of_root - 1;  // most ranks below a child of the root
  const Rank of_child = std::min(of_root, below);
  return {.steps = static_cast<double>(in_order_rounds(shape.size, shape.radix) +
                                       in_order_depth(shape.size, shape.radix)),
          .bytes = static_cast<double>(std::max(of_root, of_child + 1))};
}

}  // namespace

constexpr Algorithm allreduce_tree = {
    .collective = Collective::allreduce,
    .name = "tree",
    .help = "up and down a tree of a radix, pipelined: many ranks",
    .plan = plan_tree,
    .cost = tree_cost,
};

}  // namespace sluice
