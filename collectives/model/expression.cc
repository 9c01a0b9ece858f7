// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/model/expression.h"

#include <algorithm>
#include <bit>

namespace sluice {

Expression Expressions::leaf(Rank rank, uint32_t index) {
  Node node;
  node.index = index;
  node.first = node.last = rank;
  node.consecutive = node.balanced = true;
  node.leaves = 1;
  nodes_.push_back(node);
  return static_cast<Expression>(nodes_.size() - 1);
}

Expression Expressions::combine(Expression left, Expression right) {
  const auto next = static_cast<Expression>(nodes_.size());
  const auto [known, fresh] = combinations_.emplace(uint64_t{left} << 32 | right, next);
  if (!fresh) return known->second;
  const Node &l = nodes_[left], &r = nodes_[right];
  Node node;
  node.left = left;
  node.right = right;
  node.index = l.index == r.index ? l.index : mixed;
  node.first = l.first;
  node.last = r.last;
  node.consecutive = l.consecutive && r.consecutive && l.last + 1 == r.first;
  const Rank on_the_left = r.first - l.first, all = r.last + 1 - l.first;
  node.balanced =
      l.balanced && r.balanced && node.consecutive && on_the_left == std::bit_ceil(all) / 2;
  node.leaves = std::min(l.leaves + r.leaves, too_many);
  nodes_.push_back(node);
  return next;
}

bool Expressions::is_in_order(Expression e, Rank size) const {
  const Node& node = nodes_[e];
  return node.consecutive && node.first == 0 && node.last + 1 == size;
}

bool Expressions::is_balanced(Expression e, Rank size) const {
  return is_in_order(e, size) && nodes_[e].balanced;
}

bool Expressions::is_complete(Expression e, Rank size) const {
  if (is_in_order(e, size)) return true;
  if (nodes_[e].leaves != size) return false;
  std::vector<bool> seen(size, false);
  for (Rank rank : ranks(e, size)) {
    if (rank >= size || seen[rank]) return false;
    seen[rank] = true;
  }
  return true;
}

std::vector<Rank> Expressions::ranks(Expression e, size_t most) const {
  std::vector<Rank> found;
  if (e == nothing) return found;
  std::vector<Expression> todo{e};
  while (!todo.empty() && found.size() < most) {
    const Expression next = todo.back();
    todo.pop_back();
    if (is_leaf(next)) {
      found.push_back(nodes_[next].first);
    } else {
      todo.push_back(nodes_[next].right);
      todo.push_back(nodes_[next].left);
    }
  }
  return found;
}

std::string Expressions::to_string(Expression e) const {
  if (e == nothing) return "nothing";
  const Node& node = nodes_[e];
  if (is_leaf(e)) return std::to_string(node.first);
  if (node.leaves > 64) return "(" + std::to_string(node.leaves) + " operands)";
  return "(" + to_string(node.left) + " " + to_string(node.right) + ")";
}

}  // namespace sluice
