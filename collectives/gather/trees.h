// SPDX-License-Identifier: BSD-3-Clause
//
// Trees that blocks climb to the root (gather) or descend from it (scatter). All blocks of a
// subtree go in one message.
#pragma once

#include <vector>

#include "collectives/algorithm.h"
#include "collectives/patterns/tree.h"

namespace sluice {

// A child, and the ranks of its subtree, itself included, in the order of their blocks in a
// message.
struct Branch {
  Rank root;
  std::vector<Rank> ranks;
};

// A rank's place in a tree.
struct BlockTree {
  Rank parent = no_rank;    // no_rank at the root
  std::vector<Rank> ranks;  // of its own subtree, ordered as in its parent's Branch
  std::vector<Branch> children;

  void add_leaf(Rank rank) {
    ranks.push_back(rank);
    children.push_back({rank, {rank}});
  }
};

Plan gather_up(const Shape& shape, const BlockTree& tree);
Plan scatter_down(const Shape& shape, const BlockTree& tree);

}  // namespace sluice
