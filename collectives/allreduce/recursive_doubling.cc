// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/recursive_doubling.h"

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/fold.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

// mine = mine (op) the peer's, which combines the same: `to` is where it goes.
//
// Neither side may receive where it still sends from, or each would wait for the other's receive.
// So the result goes to other memory than `mine`, in turn output and scratch, such that the last
// goes to output. Only a first exchange may find both its operand in input and its turn to be
// output's, which may be the same memory: it receives into scratch.
void exchange(PlanBuilder& plan, Rank peer, bool peer_first, const Piece& mine, const Piece& to,
              const Piece& scratch) {
  plan.send(peer, mine);
  if (mine == all_input && to == all_output) {
    plan.recv(peer, scratch);
    plan.reduce(peer_first ? scratch : mine, peer_first ? mine : scratch, to);
  } else {
    plan.recv_reduce(peer, mine, to, peer_first);
  }
}

void run_core(PlanBuilder& plan, Rank rank, const Fold& fold) {
  const Piece scratch = plan.scratch(all_input);
  uint32_t exchanges = floor_log2(fold.core);
  const auto place = [&] { return exchanges % 2 == 0 ? all_output : scratch; };
  Piece mine = all_input;
  if (fold.absorbs(rank)) {
    mine = place();
    plan.recv_reduce(rank - 1, all_input, mine, true);
  }
  for (Rank distance = 1; distance < fold.core; distance *= 2) {
    const Rank peer = fold.from_core(fold.to_core(rank) ^ distance);
    --exchanges;
    const Piece to = place();
    exchange(plan, peer, peer < rank, mine, to, scratch);
    mine = to;
  }
  if (fold.absorbs(rank)) plan.send(rank - 1, all_output);
}

}  // namespace

Plan allreduce_recursive_doubling(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const Fold fold(shape.size);
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else if (fold.folds(shape.rank)) {
    plan.send(shape.rank + 1, all_input);
    plan.recv(shape.rank + 1, all_output);
  } else {
    run_core(plan, shape.rank, fold);
  }
  return std::move(plan).build();
}

Cost allreduce_recursive_doubling_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const double exchanges = floor_log2(shape.size);
  const bool folds = Fold(shape.size).extra() > 0;
  return {.steps = exchanges + (folds ? 2 : 0), .bytes = exchanges + (folds ? 1 : 0), .scratch = 1};
}

}  // namespace sluice
