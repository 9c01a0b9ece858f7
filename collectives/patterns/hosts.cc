// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/patterns/hosts.h"

#include <algorithm>
#include <utility>

namespace sluice {

bool has_levels(std::span<const uint32_t> hosts) {
  const uint32_t count = count_hosts(hosts);
  return count > 1 && count < hosts.size();
}

bool has_consecutive_ranks(std::span<const uint32_t> hosts) {
  return std::is_sorted(hosts.begin(), hosts.end());
}

Hosts::Hosts(const Shape& shape)
    : hosts(shape.hosts), ranks(count_hosts(shape.hosts)), own(shape.hosts[shape.rank]) {
  for (Rank rank = 0; rank < shape.size; ++rank) {
    if (rank == shape.rank) place = size_of(own);
    ranks[hosts[rank]].push_back(rank);
  }
  const auto [low, high] = std::minmax_element(
      ranks.begin(), ranks.end(),
      [](const auto& left, const auto& right) { return left.size() < right.size(); });
  least = static_cast<Rank>(low->size());
  most = static_cast<Rank>(high->size());
}

void Hosts::put_first(Rank root) {
  std::vector<Rank>& there = ranks[host_of(root)];
  const auto at = std::find(there.begin(), there.end(), root);
  const auto place_of_root = static_cast<Rank>(at - there.begin());
  std::rotate(there.begin(), at, at + 1);
  if (own != host_of(root) || place > place_of_root) return;
  place = place == place_of_root ? 0 : place + 1;
}

std::vector<Rank> Hosts::across(Rank share) const {
  std::vector<Rank> group;
  group.reserve(count());
  for (const auto& there : ranks) group.push_back(there[share % there.size()]);
  return group;
}

std::vector<Rank> Hosts::own_shares() const {
  std::vector<Rank> own_ones;
  for (Rank share = place; share < shares(); share += size_of(own)) own_ones.push_back(share);
  return own_ones;
}

namespace {

void append(TreeNode& tree, const TreeNode& part, std::span<const Rank> ranks) {
  for (const Subtree& child : part.children) {
    tree.children.push_back({ranks[child.root], 0, 0});
  }
  if (part.parent != no_rank) tree.parent = ranks[part.parent];
}

}  // namespace

TreeNode hosts_tree(const Shape& shape) {
  const Hosts hosts(shape);
  const uint32_t home = hosts.host_of(shape.root);
  const auto& at_home = hosts.ranks[home];
  const auto place_of_root =
      static_cast<Rank>(std::find(at_home.begin(), at_home.end(), shape.root) - at_home.begin());
  const Rank leader = hosts.own == home ? place_of_root : 0;
  std::vector<Rank> leaders = hosts.across(0);
  leaders[home] = shape.root;
  TreeNode tree{no_rank, {shape.rank, 0, 0}, {}};
  append(tree, binomial_tree(hosts.place, hosts.size_of(hosts.own), leader), hosts.here());
  if (hosts.place == leader) {
    append(tree, binomial_tree(hosts.own, hosts.count(), home), leaders);
  }
  return tree;
}

}  // namespace sluice
