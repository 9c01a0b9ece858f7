// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter between the root and each other rank, all at once.
//
// Cost: 1 step, of p-1 messages at once. Gather: each rank but the root sends S/p. Scatter: the
// root sends (p-1)/p x S, the least possible.
// Scratch: none.
#include "collectives/gather/gather.h"
#include "collectives/gather/trees.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

BlockTree star_blocks(const Shape& shape) {
  if (shape.rank != shape.root) return {shape.root, {shape.rank}, {}};
  BlockTree tree{no_rank, {shape.rank}, {}};
  for (Rank distance = 1; distance < shape.size; ++distance) {
    tree.add_leaf(ahead(shape.root, distance, shape.size));
  }
  return tree;
}

Plan plan_gather_linear(const Shape& shape) { return gather_up(shape, star_blocks(shape)); }
Plan plan_scatter_linear(const Shape& shape) { return scatter_down(shape, star_blocks(shape)); }

Cost gather_linear_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = 1, .bytes = 1.0 / shape.size};
}

Cost scatter_linear_cost(const Shape& shape) {
  const double p = shape.size;
  return {.steps = shape.size > 1 ? 1.0 : 0.0, .bytes = (p - 1) / p};
}

}  // namespace

constexpr Algorithm gather_linear = {
    .collective = Collective::gather,
    .name = "linear",
    .help = "each sends to the root: few ranks or long blocks",
    .plan = plan_gather_linear,
    .cost = gather_linear_cost,
};

constexpr Algorithm gatherv_linear = serving(Collective::gatherv, gather_linear);

constexpr Algorithm scatter_linear = {
    .collective = Collective::scatter,
    .name = "linear",
    .help = "the root sends to each: few ranks or long blocks",
    .plan = plan_scatter_linear,
    .cost = scatter_linear_cost,
};

constexpr Algorithm scatterv_linear = serving(Collective::scatterv, scatter_linear);

}  // namespace sluice
