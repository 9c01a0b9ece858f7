// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by a ring of whole vectors, as gloo's allreduce_ring: every rank's operand travels
// round the ring unreduced, and each rank combines all of them by itself.
//
// Cost (gloo, docs/algorithms.md, which rounds to p x S): p-1 steps; each rank sends (p-1) x S.
// Half the steps of `ring`; with two ranks it sends as many bytes, with more ranks more.
// Order: kept, with the same bits on all ranks. Operands reach each rank in a different order, so
// all ranks combine them by one binary tree over rank numbers (2i with 2i+1, then pairs with pairs,
// and so on), as soon as both operands of a node are there.
// Scratch: at most 2 ceil(log2 p) x S, and at most (p-1) x S: for operands that are being
// forwarded, and results of subtrees that wait for their sibling.
#include "collectives/allreduce/allreduce.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

// Whole vectors in scratch, reused in the order in which they became free.
class ScratchVectors {
 public:
  explicit ScratchVectors(PlanBuilder& plan) : plan_(plan) {}

  // Returns a vector other than `passed_on`, which is still being sent: if each rank received where
  // it sends from, all would wait for each other round the ring. If free at all, `passed_on` was
  // freed last.
  Piece borrow(const Piece& passed_on) {
    if (free_.empty() || free_.front() == passed_on) return plan_.scratch(all_input);
    const Piece scratch = free_.front();
    free_.pop_front();
    return scratch;
  }
  void give_back(const Piece& scratch) { free_.push_back(scratch); }

 private:
  PlanBuilder& plan_;
  std::deque<Piece> free_;
};

// Combines operands by the binary tree over rank numbers, in whatever order they arrive. The result
// of a subtree is stored where one of its operands was; for the subtree with this rank's own
// operand, which is in input, that is output.
class Combination {
 public:
  Combination(PlanBuilder& plan, Rank size, ScratchVectors& vectors)
      : plan_(plan), size_(size), vectors_(vectors) {}

  // The operand of `rank` is in `arrived`.
  void add(Rank rank, const Piece& arrived) {
    Piece sum = arrived;
    uint32_t level = 0;
    for (; (size_ - 1) >> level != 0; ++level, rank /= 2) {
      const Rank sibling = rank ^ 1;
      if (sibling > (size_ - 1) >> level) continue;  // its parent has no other child
      const auto found = waiting_.find({level, sibling});
      if (found == waiting_.end()) break;
      sum = rank < sibling ? combine(sum, found->second, found->second, arrived)
                           : combine(found->second, sum, found->second, arrived);
      waiting_.erase(found);
    }
    waiting_.emplace(std::pair(level, rank), sum);
    if (sum != arrived && arrived.area == Area::scratch) vectors_.give_back(arrived);
  }

 private:
  Piece combine(const Piece& left, const Piece& right, const Piece& waited, const Piece& arrived) {
    const bool own = left.area != Area::scratch || right.area != Area::scratch;
    const Piece to = own ? all_output : waited;
    plan_.reduce(left, right, to);
    for (const Piece& operand : {left, right}) {
      const bool done = operand.area == Area::scratch && operand != to && operand != arrived;
      if (done) vectors_.give_back(operand);
    }
    return to;
  }

  PlanBuilder& plan_;
  const Rank size_;
  ScratchVectors& vectors_;
  std::map<std::pair<uint32_t, Rank>, Piece> waiting_;  // for a sibling; by level and place in it
};

Plan plan_ring_whole(const Shape& shape) {
  const Rank rank = shape.rank, size = shape.size;
  PlanBuilder plan(alias_of(Collective::allreduce, rank));
  if (size == 1) plan.copy(all_input, all_output);
  ScratchVectors vectors(plan);
  Combination combination(plan, size, vectors);
  combination.add(rank, all_input);
  Piece passed_on = all_input;
  for (Rank step = 1; step < size; ++step) {
    const Piece scratch = vectors.borrow(passed_on);
    plan.send(next_in_ring(rank, size), passed_on);
    plan.recv(previous_in_ring(rank, size), scratch);
    combination.add(behind(rank, step, size), scratch);
    passed_on = scratch;
  }
  return std::move(plan).build();
}

Cost ring_whole_cost(const Shape& shape) {
  const double others = shape.size - 1;
  return {
      .steps = others, .bytes = others, .scratch = std::min(others, 2.0 * ceil_log2(shape.size))};
}

}  // namespace

constexpr Algorithm allreduce_ring_whole = {
    .collective = Collective::allreduce,
    .name = "ring_whole",
    .help = "whole operands round a ring: small messages, two or three ranks",
    .plan = plan_ring_whole,
    .cost = ring_whole_cost,
    .bracketing = Bracketing::balanced,
};

}  // namespace sluice
