// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/hosts_chain.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"

namespace sluice {

Plan broadcast_hosts_chain(const Shape& shape) {
  Hosts hosts(shape);
  hosts.put_first(shape.root);
  const uint32_t home = hosts.host_of(shape.root), next = next_in_ring(hosts.own, hosts.count());
  const bool at_home = hosts.own == home, is_root = shape.rank == shape.root;
  const Rank leaders = hosts.leaders();
  const Piece share = chunk(Area::output, hosts.place, leaders);
  PlanBuilder plan;
  if (hosts.leads()) {
    plan.talk_among(hosts.across(hosts.place));
    if (!at_home) plan.recv(previous_in_ring(hosts.own, hosts.count()), share);
    plan.talk_among(hosts.here());
    if (at_home && !is_root) plan.recv(0, share);
    for (Rank leader = 1; is_root && leader < leaders; ++leader) {
      plan.send(leader, chunk(Area::output, leader, leaders));
    }
    plan.talk_among(hosts.across(hosts.place));
    if (next != home) plan.send(next, share);
    plan.talk_among(hosts.here());
    for (Rank to = at_home ? 1 : 0; to < hosts.here().size(); ++to) {
      if (to != hosts.place) plan.send(to, share);
    }
  }
  plan.talk_among(hosts.here());
  for (Rank leader = 0; !is_root && leader < leaders; ++leader) {
    if (leader != hosts.place) plan.recv(leader, chunk(Area::output, leader, leaders));
  }
  return std::move(plan).build();
}

Cost broadcast_hosts_chain_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double h = hosts.count(), n = hosts.most, leaders = hosts.leaders();
  return {.steps = h - 1 + (n > 1 ? 2 : 0),
          .bytes = (n - 1 + leaders) / leaders,
          .between = 1,
          .at_most = !hosts.even()};
}

}  // namespace sluice
