// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/hosts_binomial.h"

#include <algorithm>
#include <utility>

#include "collectives/broadcast/binomial.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"

namespace sluice {

Plan broadcast_hosts_binomial(const Shape& shape) {
  PlanBuilder plan;
  const TreeNode node = hosts_tree(shape);
  if (node.parent != no_rank) plan.recv(node.parent, all_output);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost broadcast_hosts_binomial_cost(const Shape& shape) {
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
  return {.steps = broadcast_binomial_cost(among_hosts).steps + floor_log2(hosts.most),
          .bytes = static_cast<double>(children),
          .between = static_cast<double>(hosts_below),
          .at_most = !hosts.even()};
}

}  // namespace sluice
