// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast down binomial trees on two levels: from the root to a leader on each host, and from
// those to the ranks of their hosts (hosts_tree; Karonis et al., IPDPS 2000).
//
// Cost, for h hosts of n ranks each: as `binomial` among h, and floor(log2 n) more steps, as
// messages to several children go at once. A rank sends S to each child. Hosts with fewer ranks
// than n need less.
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <algorithm>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"

namespace sluice {

namespace {

Plan plan_hosts_binomial(const Shape& shape) {
  PlanBuilder plan;
  const TreeNode node = hosts_tree(shape);
  if (node.parent != no_rank) plan.recv(node.parent, all_output);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost hosts_binomial_cost(const Shape& shape) {
  const Hosts hosts(shape);
  size_t children = 0, hosts_below = 0;
  for (Rank rank = 0; rank < shape.size; ++rank) {
    Shape other = shape;
    other.rank = rank;
    const TreeNode node = hosts_tree(other);
    const auto is_away = [&](const Subtree& child) {
      return hosts.host_of(child.root) != hosts.host_of(rank);
    };
    const auto away = std::count_if(node.children.begin(), node.children.end(), is_away);
    children = std::max(children, node.children.size());
    hosts_below = std::max(hosts_below, static_cast<size_t>(away));
  }
  const Shape among_hosts{.size = hosts.count(), .root = hosts.host_of(shape.root)};
  return {.steps = broadcast_binomial.cost(among_hosts).steps + floor_log2(hosts.most),
          .bytes = static_cast<double>(children),
          .between = static_cast<double>(hosts_below),
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm broadcast_hosts_binomial = {
    .collective = Collective::broadcast,
    .name = "hosts_binomial",
    .help = "binomial trees among the hosts and on each: short vectors",
    .needs = {.hosts = true},
    .plan = plan_hosts_binomial,
    .cost = hosts_binomial_cost,
};

}  // namespace sluice
