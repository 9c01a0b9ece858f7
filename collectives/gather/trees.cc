// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/gather/trees.h"

#include <map>
#include <utility>

#include "collectives/patterns/chunk.h"

namespace sluice {

namespace {

// Where a rank has the blocks of its subtree: the root in `blocks`, which holds all; others have
// their own in `own`, and those in transit in scratch.
class Places {
 public:
  Places(PlanBuilder& plan, const Shape& shape, const BlockTree& tree, Area blocks,
         const Piece& own) {
    for (const Rank rank : tree.ranks) {
      if (tree.parent == no_rank) {
        places_[rank] = {blocks, rank, {}};
      } else {
        places_[rank] = rank == shape.rank ? own : plan.scratch(own);
      }
    }
  }

  std::vector<Piece> of(const std::vector<Rank>& ranks) const {
    std::vector<Piece> found;
    for (const Rank rank : ranks) found.push_back(places_.at(rank));
    return found;
  }

 private:
  std::map<Rank, Piece> places_;
};

}  // namespace

Plan gather_up(const Shape& shape, const BlockTree& tree) {
  PlanBuilder plan(alias_of(Collective::gather, shape.rank));
  const Places places(plan, shape, tree, Area::output, all_input);
  for (const Branch& child : tree.children) plan.recv(child.root, places.of(child.ranks));
  if (tree.parent == no_rank) {
    plan.copy(all_input, Piece{Area::output, shape.rank, {}});
  } else {
    plan.send(tree.parent, places.of(tree.ranks));
  }
  return std::move(plan).build();
}

Plan scatter_down(const Shape& shape, const BlockTree& tree) {
  PlanBuilder plan;
  const Places places(plan, shape, tree, Area::input, all_output);
  if (tree.parent != no_rank) plan.recv(tree.parent, places.of(tree.ranks));
  for (const Branch& child : tree.children) plan.send(child.root, places.of(child.ranks));
  if (tree.parent == no_rank) plan.copy(Piece{Area::input, shape.rank, {}}, all_output);
  return std::move(plan).build();
}

}  // namespace sluice
