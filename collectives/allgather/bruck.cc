// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allgather/bruck.h"

#include <algorithm>
#include <utility>

#include "collectives/allgather/blocks.h"
#include "collectives/patterns/log2.h"

namespace sluice {

Plan allgather_bruck(const Shape& shape) {
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

Cost allgather_bruck_cost(const Shape& shape) {
  const double p = shape.size;
  const double steps = shape.size > 1 ? 1 + ceil_log2((shape.size + 2) / 3) : 0;
  return {.steps = steps, .bytes = (p - 1) / p};
}

}  // namespace sluice
