// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce in which every rank reduces one chunk of the vector: all ranks send it their part at once,
// it combines them by the balanced tree (Bracketing), and sends the result to the root.
//
// Cost (a direct reduce-scatter and gather; Chan, Heimlich, Purkayastha and van de Geijn,
// Collective communication: theory, practice, and experience, CCPE 19, 2007): 2 steps, of p-1
// messages at once; each rank sends S, the root (p-1)/p x S.
// Order: kept, whatever the root. Scratch: (p-1)/p x S, or S on the last of an odd number of ranks:
// for the operands of a chunk and, except on the root, its result.
#include "collectives/reduce/reduce.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_direct(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::reduce, rank));
  if (size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  const Piece own = chunk(Area::input, rank, size);
  const bool is_root = rank == shape.root;
  const Piece result = is_root ? chunk(Area::output, rank, size) : plan.scratch(own);
  send_chunks(plan, rank, size);
  reduce_balanced(plan, rank, size, own, result);
  if (!is_root) plan.send(shape.root, result);
  for (Rank distance = 1; is_root && distance < size; ++distance) {
    const Rank peer = behind(rank, distance, size);
    plan.recv(peer, chunk(Area::output, peer, size));
  }
  return std::move(plan).build();
}

Cost direct_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {
      .steps = 2, .bytes = 1, .scratch = (reduce_balanced_slots(shape.size) + 1.0) / shape.size};
}

}  // namespace

constexpr Algorithm reduce_direct = {
    .collective = Collective::reduce,
    .name = "direct",
    .help = "each rank reduces a chunk for the root: large messages, in rank order",
    .plan = plan_direct,
    .cost = direct_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
