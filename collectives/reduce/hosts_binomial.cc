// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce up binomial trees on two levels: on each host to its leader, and from the leaders to the
// root, which is the leader on its own host (hosts_tree; Karonis et al., IPDPS 2000).
//
// Cost, for h hosts of n ranks each: ceil(log2 n) + ceil(log2 h) steps; each rank but the root
// sends S, as does each host but the root's. Hosts with fewer ranks than n need less.
// Order: kept if each host's ranks are consecutive, whatever the root.
// Scratch: S.
#include "collectives/reduce/reduce.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_hosts_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  reduce_to_root(plan, hosts_tree(shape));
  return std::move(plan).build();
}

Cost hosts_binomial_cost(const Shape& shape) {
  const Hosts hosts(shape);
  return {.steps = static_cast<double>(ceil_log2(hosts.most) + ceil_log2(hosts.count())),
          .bytes = 1,
          .scratch = 1,
          .between = 1,
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm reduce_hosts_binomial = {
    .collective = Collective::reduce,
    .name = "hosts_binomial",
    .help = "binomial trees on each host and among the hosts: small messages",
    .needs = {.hosts = true},
    .plan = plan_hosts_binomial,
    .cost = hosts_binomial_cost,
};

}  // namespace sluice
