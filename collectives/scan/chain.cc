// SPDX-License-Identifier: BSD-3-Clause
//
// Scan and exscan by a chain: each rank combines what the rank before it sends with its own
// operand, and sends that on. Segments are pipelined, so with many of them all links are busy at
// once.
//
// Cost (pipeline algorithm, as in reduce/chain.cc): p-1 steps; each rank but the last sends S. With
// m segments it takes as long as p-2+m segments.
// Order: kept, one operand after the other.
// Scratch: none; 2 S for exscan on ranks inside the chain.
#include "collectives/patterns/chunk.h"
#include "collectives/scan/scan.h"

namespace sluice {

namespace {

Plan plan_scan_chain(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::scan, shape.rank));
  if (shape.rank == 0) {
    plan.copy(all_input, all_output);
  } else {
    plan.recv_reduce(shape.rank - 1, all_input, all_output, true);
  }
  const Piece& sum = shape.rank == 0 ? all_input : all_output;
  if (shape.rank + 1 < shape.size) plan.send(shape.rank + 1, sum);
  return std::move(plan).build();
}

Plan plan_exscan_chain(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::exscan, shape.rank));
  const Rank next = shape.rank + 1;
  if (shape.rank == 0) {
    if (next < shape.size) plan.send(next, all_input);
  } else if (next == shape.size) {
    plan.recv(shape.rank - 1, all_output);
  } else {
    // The output may be the operand's memory.
    const Piece before = plan.scratch(all_input), sum = plan.scratch(all_input);
    plan.recv(shape.rank - 1, before);
    plan.reduce(before, all_input, sum);
    plan.send(next, sum);
    plan.copy(before, all_output);
  }
  return std::move(plan).build();
}

Cost scan_chain_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = shape.size - 1.0, .bytes = 1};
}

Cost exscan_chain_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  return {.steps = shape.size - 1.0, .bytes = 1, .scratch = shape.size > 2 ? 2.0 : 0.0};
}

}  // namespace

constexpr Algorithm scan_chain = {
    .collective = Collective::scan,
    .name = "chain",
    .help = "pipeline from rank to rank: large messages",
    .plan = plan_scan_chain,
    .cost = scan_chain_cost,
    .bracketing = Bracketing::left,
};

constexpr Algorithm exscan_chain = {
    .collective = Collective::exscan,
    .name = "chain",
    .help = "pipeline from rank to rank: large messages",
    .plan = plan_exscan_chain,
    .cost = exscan_chain_cost,
    .bracketing = Bracketing::left,
};

}  // namespace sluice
