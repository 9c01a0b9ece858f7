// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck's allgather: in round k each rank has the blocks of the 2^k ranks from itself on. It sends
// them to the rank 2^k places back and receives as many from the rank 2^k places ahead; the last
// round moves only the missing blocks. A message is gathered from the blocks' final places in the
// output, so no rotation is needed at the end.
//
// Cost (Bruck, Ho, Kipnis, Upfal and Weathersby, Efficient algorithms for all-to-all communications
// in multiport message-passing systems, IEEE TPDS 8, 1997): ceil(log2 p) rounds, each rank sends
// (p-1)/p x S. The last round does not wait for the one before if it moves at most half of the
// blocks that it could, so the critical path has 1 + ceil(log2(p/3)) steps, for p > 1.
// Scratch: none.
#include "collectives/allgather/allgather.h"

#include <algorithm>
#include <utility>

#include "collectives/allgather/blocks.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

Plan plan_bruck(const Shape& shape) {
  const Rank size = shape.size;
  PlanBuilder plan(alias_of(Collective::allgather, shape.rank));
  for (Rank have = 1; have < size; have *= 2) {
    const Rank count = std::min(have, size - have);
    const Rank source = ahead(shape.rank, have, size);
    plan.send(behind(shape.rank, have, size), gathered_blocks(shape, shape.rank, count));
    plan.recv(source, gathered_blocks(shape, source, count));
  }
  keep_own_block(shape, plan);
  return std::move(plan).build();
}

Cost bruck_cost(const Shape& shape) {
  const double p = shape.size;
  const double steps = shape.size > 1 ? 1 + ceil_log2((shape.size + 2) / 3) : 0;
  return {.steps = steps, .bytes = (p - 1) / p};
}

}  // namespace

constexpr Algorithm allgather_bruck = {
    .collective = Collective::allgather,
    .name = "bruck",
    .help = "log2 p rounds for any number of ranks: short blocks",
    .plan = plan_bruck,
    .cost = bruck_cost,
};

constexpr Algorithm allgatherv_bruck = serving(Collective::allgatherv, allgather_bruck);

}  // namespace sluice
