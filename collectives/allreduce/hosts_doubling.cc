// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/hosts_doubling.h"

#include <bit>
#include <utility>

#include "collectives/allreduce/recursive_doubling.h"
#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan allreduce_hosts_doubling(const Shape& shape) {
  const Hosts hosts(shape);
  const TreeNode node = binomial_tree(hosts.place, hosts.size_of(hosts.own), 0);
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  plan.talk_among(hosts.here());
  if (hosts.place != 0) {
    up_and_down(plan, node, Part{});
    return std::move(plan).build();
  }
  RecursiveDoubling among_leaders(plan, hosts.own, hosts.count());
  const Piece sum = node.children.empty() ? all_input : among_leaders.place();
  reduce_up(plan, node, all_input, sum);
  plan.talk_among(hosts.across(0));
  among_leaders.run(sum);
  plan.talk_among(hosts.here());
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost allreduce_hosts_doubling_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const bool folds = !std::has_single_bit(hosts.count());
  const double up = ceil_log2(hosts.most), down = floor_log2(hosts.most);
  const double exchanges = floor_log2(hosts.count());
  const double sent = exchanges + (folds ? 1 : 0);
  return {.steps = up + exchanges + (folds ? 2 : 0) + down,
          .bytes = sent + up,
          .scratch = 1,
          .between = sent,
          .at_most = !hosts.even()};
}

}  // namespace sluice
