// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce in which every rank reduces one chunk of the vector: all ranks send it their part at
// once, it combines them by the balanced tree (Bracketing), and sends the result to all. It sends
// as few bytes as a ring, and gives the same bits as other algorithms with that bracketing.
//
// Cost (the direct algorithms of Chan, Heimlich, Purkayastha and van de Geijn, Collective
// communication: theory, practice, and experience, CCPE 19, 2007): 2 steps, of p-1 messages at
// once; each rank sends 2(p-1)/p x S.
// Order: kept. Scratch: (p-2)/p x S, or (p-1)/p x S on the last of an odd number of ranks.
#include "collectives/allreduce/allreduce.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_direct(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::allreduce, rank));
  if (size == 1) {
    plan.copy(all_input, all_output);
    return std::move(plan).build();
  }
  const Piece result = chunk(Area::output, rank, size);
  send_chunks(plan, rank, size);
  reduce_balanced(plan, rank, size, chunk(Area::input, rank, size), result);
  for (Rank distance = 1; distance < size; ++distance) {
    plan.send(ahead(rank, distance, size), result);
  }
  for (Rank distance = 1; distance < size; ++distance) {
    const Rank peer = behind(rank, distance, size);
    plan.recv(peer, chunk(Area::output, peer, size));
  }
  return std::move(plan).build();
}

Cost direct_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const double p = shape.size;
  return {.steps = 2, .bytes = 2 * (p - 1) / p, .scratch = reduce_balanced_slots(shape.size) / p};
}

}  // namespace

constexpr Algorithm allreduce_direct = {
    .collective = Collective::allreduce,
    .name = "direct",
    .help = "each rank reduces a chunk for all: large messages, by the balanced tree",
    .plan = plan_direct,
    .cost = direct_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
