// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/recursive_doubling.h"

#include "collectives/allreduce/allreduce.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

// Adds an exchange with the peer: to = mine (op) the peer's; the peer computes the same.
//
// A rank may not receive into memory that it still sends from, or each side would wait for the
// other's receive. So the result goes to other memory than `mine`: alternately to output and
// scratch, such that the last result is in output. In the first exchange the operand may be in
// input and the result's place be output, which may be the same memory; then it receives into
// scratch.
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

}  // namespace

RecursiveDoubling::RecursiveDoubling(PlanBuilder& plan, Rank rank, Rank size)
    : plan_(plan), rank_(rank), fold_(size), exchanges_(floor_log2(fold_.core)) {
  if (!fold_.folds(rank)) scratch_ = plan.scratch(all_input);
}

Piece RecursiveDoubling::place() const {
  return exchanges_ % 2 == 0 || fold_.folds(rank_) ? all_output : scratch_;
}

void RecursiveDoubling::run(Piece mine) {
  if (fold_.folds(rank_)) {
    plan_.send(rank_ + 1, mine);
    plan_.recv(rank_ + 1, all_output);
    return;
  }
  if (fold_.absorbs(rank_)) {
    plan_.recv_reduce(rank_ - 1, mine, place(), true);
    mine = place();
  }
  for (Rank distance = 1; distance < fold_.core; distance *= 2) {
    const Rank peer = fold_.from_core(fold_.to_core(rank_) ^ distance);
    --exchanges_;
    exchange(plan_, peer, peer < rank_, mine, place(), scratch_);
    mine = place();
  }
  if (fold_.absorbs(rank_)) plan_.send(rank_ - 1, all_output);
}

namespace {

Plan plan_recursive_doubling(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  if (shape.size == 1) {
    plan.copy(all_input, all_output);
  } else {
    RecursiveDoubling(plan, shape.rank, shape.size).run(all_input);
  }
  return std::move(plan).build();
}

Cost recursive_doubling_cost(const Shape& shape) {
  if (shape.size == 1) return {};
  const double exchanges = floor_log2(shape.size);
  const bool folds = Fold(shape.size).extra() > 0;
  return {.steps = exchanges + (folds ? 2 : 0), .bytes = exchanges + (folds ? 1 : 0), .scratch = 1};
}

}  // namespace

constexpr Algorithm allreduce_recursive_doubling = {
    .collective = Collective::allreduce,
    .name = "recursive_doubling",
    .help = "exchanges of all data at doubling distances: small messages",
    .plan = plan_recursive_doubling,
    .cost = recursive_doubling_cost,
    .bracketing = Bracketing::balanced_on_powers_of_two,
};

}  // namespace sluice
