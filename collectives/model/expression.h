// SPDX-License-Identifier: BSD-3-Clause
//
// Symbolic values of elements: an input element of a rank, or a combination of two values. The
// model of plans (model.h) computes with these instead of numbers. Equal expressions have equal
// numbers, so two of any size are compared in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/plan.h"

namespace sluice {

// The number of an expression within one Expressions object.
using Expression = uint32_t;

class Expressions {
 public:
  // The value of memory that was never written.
  static constexpr Expression nothing = 0;
  // The index of a combination whose operands have different ones.
  static constexpr uint32_t mixed = std::numeric_limits<uint32_t>::max();

  Expressions() : nodes_(1) {}

  // Element `index` of what the rank contributes. Call it once for each.
  Expression leaf(Rank rank, uint32_t index);
  // left (op) right. Neither may be `nothing`.
  Expression combine(Expression left, Expression right);

  bool is_leaf(Expression e) const { return nodes_[e].left == nothing; }
  // The index that all its leaves have, or `mixed`.
  uint32_t index(Expression e) const { return nodes_[e].index; }
  // The rank of its leftmost leaf.
  Rank rank(Expression e) const { return nodes_[e].first; }
  // Whether it combines ranks 0 to size - 1, each once, in this order.
  bool is_in_order(Expression e, Rank size) const;
  // The same, and by the balanced tree (Bracketing in algorithm.h).
  bool is_balanced(Expression e, Rank size) const;
  // Whether it combines ranks 0 to size - 1, each once, in any order.
  bool is_complete(Expression e, Rank size) const;

  // The ranks that it combines, from left to right; no more than `most` of them.
  std::vector<Rank> ranks(Expression e, size_t most) const;
  // For messages: "nothing", "2" (rank 2's element), "((0 1) 2)", or "(70 operands)" if over 64.
  std::string to_string(Expression e) const;

 private:
  struct Node {
    Expression left = nothing, right = nothing;
    uint32_t index = mixed;
    Rank first = 0, last = 0;  // leftmost and rightmost
    bool consecutive = false;  // combines ranks first to last, in order
    bool balanced = false;     // by the balanced tree
    uint32_t leaves = 0;       // at most too_many
  };

  static constexpr uint32_t too_many = 1u << 30;

  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, Expression> combinations_;  // by left and right
};

}  // namespace sluice
