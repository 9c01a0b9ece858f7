// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast by van de Geijn's method: the vector is cut into p chunks, which are scattered down a
// binomial tree and then gathered by all ranks on a ring. The ring does not send a rank the chunks
// that the scatter sent it for its subtree (as in Zhou et al., A bandwidth-saving optimization for
// MPI broadcast collective operation, ICPPW 2015). So the root only sends, and nothing is written
// twice.
//
// Cost (Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, Interprocessor collective
// communication library, SHPCC 1994; Thakur, Rabenseifner and Gropp, Optimization of collective
// communication operations in MPICH, IJHPCA 19, 2005): ceil(log2 p) + p-1 steps of one message at a
// time, scatter before ring. Here a rank starts the ring with the chunks that it has: p-1 steps,
// which the root's own chunk takes to the last rank. The root sends 2(p-1)/p x S, and no other rank
// more.
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/tree.h"

namespace sluice {

namespace {

bool contains(const Subtree& tree, Rank rank) { return tree.first <= rank && rank < tree.last; }

// Uses virtual ranks, in which the root is 0, so that the cost is the same for any root.
Plan plan_scatter_allgather(const Shape& shape) {
  const Rank size = shape.size;
  const Rank self = behind(shape.rank, shape.root, size);
  const auto real = [&](Rank virtual_rank) { return ahead(virtual_rank, shape.root, size); };
  PlanBuilder plan;
  if (size == 1) return std::move(plan).build();

  const TreeNode node = binomial_tree(self, size, 0);
  const auto chunks_of = [&](const Subtree& tree) {
    return chunks(Area::output, tree.first, tree.last, size);
  };
  if (node.parent != no_rank) plan.recv(real(node.parent), chunks_of(node.own));
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(real(child->root), chunks_of(*child));
  }

  const Rank next = next_in_ring(self, size);
  const Rank previous = previous_in_ring(self, size);
  const Subtree next_has = binomial_tree(next, size, 0).own;
  for (Rank step = 0; step + 1 < size; ++step) {
    const Rank out = behind(self, step, size);
    const Rank in = behind(previous, step, size);
    if (!contains(next_has, out)) plan.send(real(next), chunk(Area::output, out, size));
    if (!contains(node.own, in)) plan.recv(real(previous), chunk(Area::output, in, size));
  }
  return std::move(plan).build();
}

Cost scatter_allgather_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = p - 1, .bytes = 2 * (p - 1) / p};
}

}  // namespace

constexpr Algorithm broadcast_scatter_allgather = {
    .collective = Collective::broadcast,
    .name = "scatter_allgather",
    .help = "scatter, then ring allgather: long vectors, many ranks",
    .plan = plan_scatter_allgather,
    .cost = scatter_allgather_cost,
};

}  // namespace sluice
