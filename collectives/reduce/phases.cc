// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/phases.h"

#include <bit>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/ring.h"

namespace sluice {

void ring_reduce_scatter(PlanBuilder& plan, Rank rank, Rank size, const Piece& operand,
                         const Piece& total) {
  const Rank next = next_in_ring(rank, size), previous = previous_in_ring(rank, size);
  Piece passed_on = chunk(operand, previous, size);
  for (Rank step = 0; step + 1 < size; ++step) {
    const Piece own = chunk(operand, behind(previous, step + 1, size), size);
    const Piece sum = chunk(total, behind(previous, step + 1, size), size);
    plan.send(next, passed_on);
    plan.recv_reduce(previous, own, sum, previous < rank);
    passed_on = sum;
  }
}

void ring_allgather(PlanBuilder& plan, Rank rank, Rank size, const Piece& total) {
  const Rank next = next_in_ring(rank, size), previous = previous_in_ring(rank, size);
  for (Rank step = 0; step + 1 < size; ++step) {
    plan.send(next, chunk(total, behind(rank, step, size), size));
    plan.recv(previous, chunk(total, behind(rank, step + 1, size), size));
  }
}

void reduce_up(PlanBuilder& plan, const TreeNode& node, const Piece& operand, const Piece& total) {
  Piece sum = operand;
  for (const Subtree& child : node.children) {
    plan.recv_reduce(child.root, sum, total, child.root < node.own.root);
    sum = total;
  }
  if (node.parent != no_rank) plan.send(node.parent, sum);
}

void reduce_to_root(PlanBuilder& plan, const TreeNode& node) {
  if (node.parent == no_rank && node.children.empty()) {
    plan.copy(all_input, all_output);
  } else if (node.parent == no_rank) {
    reduce_up(plan, node, all_input, all_output);
  } else {
    reduce_up(plan, node, all_input, node.children.empty() ? all_input : plan.scratch(all_input));
  }
}

namespace {

class BalancedTree {
 public:
  BalancedTree(PlanBuilder& plan, Rank rank, const Piece& own, const Piece& total)
      : plan_(plan), rank_(rank), own_(own), total_(total) {}

  // Adds the steps that combine ranks [first, last); returns where the result is. `total` may be
  // the same memory as `own`, so only results that include `own` are written to it.
  Piece combine(Rank first, Rank last) {
    const bool has_own = first <= rank_ && rank_ < last;
    if (last - first == 1) return has_own ? own_ : receive(first);
    if (last - first == 2 && has_own) return receive_onto_own(first == rank_ ? first + 1 : first);
    const Rank middle = first + std::bit_ceil(last - first) / 2;
    const Piece left = combine(first, middle), right = combine(middle, last);
    const Piece sum = has_own ? total_ : left;
    plan_.reduce(left, right, sum);
    return sum;
  }

 private:
  Piece receive(Rank from) {
    const Piece scratch = plan_.scratch(own_);
    plan_.recv(from, scratch);
    return scratch;
  }
  Piece receive_onto_own(Rank from) {
    plan_.recv_reduce(from, own_, total_, from < rank_);
    return total_;
  }

  PlanBuilder& plan_;
  const Rank rank_;
  const Piece own_, total_;
};

}  // namespace

void reduce_balanced(PlanBuilder& plan, Rank rank, Rank size, const Piece& own,
                     const Piece& total) {
  BalancedTree(plan, rank, own, total).combine(0, size);
}

uint32_t reduce_balanced_slots(Rank size) { return size < 2 ? 0 : size - 2 + size % 2; }

void send_chunks(PlanBuilder& plan, Rank rank, Rank size) {
  for (Rank distance = 1; distance < size; ++distance) {
    const Rank peer = ahead(rank, distance, size);
    plan.send(peer, chunk(Area::input, peer, size));
  }
}

}  // namespace sluice
