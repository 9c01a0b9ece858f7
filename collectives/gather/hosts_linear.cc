// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter on two levels: all blocks of a host other than the root's go between it and
// the root in one message, by the host's first rank (Karonis et al., IPDPS 2000).
//
// Cost, if the largest of the other hosts has n ranks: 2 steps; 1 if n is 1. Gather: its first rank
// sends most, n/p x S. Scatter: the root sends (p-1)/p x S. No byte goes between hosts twice.
// Scratch: the n-1 blocks in transit there.
#include <algorithm>

#include "collectives/gather/gather.h"
#include "collectives/gather/trees.h"
#include "collectives/patterns/hosts.h"

namespace sluice {

namespace {

BlockTree hosts_blocks_of_root(const Shape& shape, const Hosts& hosts) {
  BlockTree tree{no_rank, {shape.rank}, {}};
  for (uint32_t host = 0; host < hosts.count(); ++host) {
    const std::vector<Rank>& there = hosts.ranks[host];
    if (host != hosts.own) {
      tree.ranks.insert(tree.ranks.end(), there.begin(), there.end());
      tree.children.push_back({there.front(), there});
      continue;
    }
    for (const Rank rank : there) {
      if (rank != shape.rank) tree.add_leaf(rank);
    }
  }
  return tree;
}

BlockTree hosts_blocks(const Shape& shape) {
  const Hosts hosts(shape);
  if (shape.rank == shape.root) return hosts_blocks_of_root(shape, hosts);
  if (hosts.own == hosts.host_of(shape.root)) return {shape.root, {shape.rank}, {}};
  if (hosts.place > 0) return {hosts.here().front(), {shape.rank}, {}};
  BlockTree tree{shape.root, {shape.rank}, {}};
  for (const Rank rank : hosts.here()) {
    if (rank != shape.rank) tree.add_leaf(rank);
  }
  return tree;
}

Plan plan_gather_hosts_linear(const Shape& shape) { return gather_up(shape, hosts_blocks(shape)); }
Plan plan_scatter_hosts_linear(const Shape& shape) {
  return scatter_down(shape, hosts_blocks(shape));
}

// The ranks of the largest host but the root's.
Rank most_elsewhere(const Shape& shape, const Hosts& hosts) {
  Rank most = 0;
  for (uint32_t host = 0; host < hosts.count(); ++host) {
    if (host != hosts.host_of(shape.root)) most = std::max(most, hosts.size_of(host));
  }
  return most;
}

Cost gather_hosts_linear_cost(const Shape& shape) {
  const double p = shape.size, n = most_elsewhere(shape, Hosts(shape));
  return {.steps = n > 1 ? 2.0 : 1.0, .bytes = n / p, .scratch = (n - 1) / p, .between = n / p};
}

Cost scatter_hosts_linear_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double p = shape.size, n = most_elsewhere(shape, hosts);
  const double at_home = hosts.size_of(hosts.host_of(shape.root));
  return {.steps = n > 1 ? 2.0 : 1.0,
          .bytes = (p - 1) / p,
          .scratch = (n - 1) / p,
          .between = (p - at_home) / p};
}

}  // namespace

constexpr Algorithm gather_hosts_linear = {
    .collective = Collective::gather,
    .name = "hosts_linear",
    .help = "a rank of each host sends the host's blocks to the root: short blocks",
    .needs = {.hosts = true},
    .plan = plan_gather_hosts_linear,
    .cost = gather_hosts_linear_cost,
};

constexpr Algorithm scatter_hosts_linear = {
    .collective = Collective::scatter,
    .name = "hosts_linear",
    .help = "the root sends a host's blocks to one rank there: short blocks",
    .needs = {.hosts = true},
    .plan = plan_scatter_hosts_linear,
    .cost = scatter_hosts_linear_cost,
};

}  // namespace sluice
