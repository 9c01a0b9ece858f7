// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast on two levels for long vectors: the root sends each leader of its host a share of the
// vector. Each share goes from host to host, segment by segment, and on each host from its leader
// to the other ranks (multi-leader: Bayatpour et al., SC 2017; the chain as in `chain`).
//
// Cost, for h hosts of n ranks each: h-1 steps between hosts, and 2 inside hosts if n > 1. A host
// sends S to another, the least possible; a root that carries c of L shares sends (L + c (n - 1))/L
// x S, and no rank more. Hosts with fewer ranks than n need fewer steps.
// Scratch: none.
#include "collectives/broadcast/broadcast.h"

#include <algorithm>
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_hosts_chain(const Shape& shape) {
  Hosts hosts(shape);
  hosts.put_first(shape.root);
  const uint32_t home = hosts.host_of(shape.root), next = next_in_ring(hosts.own, hosts.count());
  const bool at_home = hosts.own == home, is_root = shape.rank == shape.root;
  const Rank shares = hosts.shares();
  PlanBuilder plan;
  plan.talk_among(hosts.here());
  for (Rank share = 0; is_root && share < shares; ++share) {
    const Rank leader = hosts.leader_of(share);
    if (leader != hosts.place) plan.send(leader, chunk(Area::output, share, shares));
  }
  for (const Rank share : hosts.own_shares()) {
    const Piece piece = chunk(Area::output, share, shares);
    if (at_home && !is_root) plan.recv(0, piece);
    plan.talk_among(hosts.across(share));
    if (!at_home) plan.recv(previous_in_ring(hosts.own, hosts.count()), piece);
    if (next != home) plan.send(next, piece);
    plan.talk_among(hosts.here());
    for (Rank to = at_home ? 1 : 0; to < hosts.here().size(); ++to) {
      if (to != hosts.place) plan.send(to, piece);
    }
  }
  for (Rank share = 0; !is_root && share < shares; ++share) {
    const Rank leader = hosts.leader_of(share);
    if (leader != hosts.place) plan.recv(leader, chunk(Area::output, share, shares));
  }
  return std::move(plan).build();
}

Cost hosts_chain_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double h = hosts.count(), n = hosts.most, shares = hosts.shares();
  double of_root = 0;
  for (const auto& there : hosts.ranks) {
    const auto ranks = static_cast<Rank>(there.size());
    of_root = std::max(of_root, shares + hosts.carried(ranks) * (ranks - 1.0));
  }
  return {.steps = h - 1 + (n > 1 ? 2 : 0),
          .bytes = of_root / shares,
          .between = 1,
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm broadcast_hosts_chain = {
    .collective = Collective::broadcast,
    .name = "hosts_chain",
    .help = "shares of a host's leaders from host to host: long vectors",
    .needs = {.hosts = true},
    .plan = plan_hosts_chain,
    .cost = hosts_chain_cost,
    .segments = 64,
};

}  // namespace sluice
