// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce on two levels for long vectors: each leader of a host reduces one share of the vector over
// its host. Each share goes from host to host towards the root's host, segment by segment, where
// the leaders send their shares to the root (multi-leader: Bayatpour et al., SC 2017; the chain as
// in `chain`).
//
// Cost, for h hosts of n ranks each: n-1 steps to the leaders, h-1 between hosts, and 1 to the root
// if n > 1. Each rank but the root sends S, and each host but the root's sends S to another, the
// least that can reach the root. Hosts with fewer ranks than n need less.
// Order: not kept.
// Scratch: S/s, with s ranks on the smallest host.
#include "collectives/reduce/reduce.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

// Reduces a share that this rank carries over this host and those before it in the chain, and sends
// the sum to the next host; on the root's host, to the root.
void reduce_share(PlanBuilder& plan, const Hosts& hosts, Rank share, uint32_t home, bool is_root) {
  const uint32_t count = hosts.count();
  const uint32_t previous = previous_in_ring(hosts.own, count);
  const bool alone = hosts.here().size() == 1 && previous == home;
  Piece sum = chunk(Area::input, share, hosts.shares()), total = sum;
  if (is_root) {
    total.area = Area::output;
  } else if (!alone) {
    total = plan.scratch(sum);
  }
  for (Rank from = 0; from < hosts.here().size(); ++from) {
    if (from == hosts.place) continue;
    plan.recv_reduce(from, sum, total, from < hosts.place);
    sum = total;
  }
  plan.talk_among(hosts.across(share));
  if (previous != home) plan.recv_reduce(previous, sum, total, previous < hosts.own);
  if (hosts.own != home) plan.send(next_in_ring(hosts.own, count), total);
  plan.talk_among(hosts.here());
  if (hosts.own == home && !is_root) plan.send(0, total);
}

Plan plan_hosts_chain(const Shape& shape) {
  Hosts hosts(shape);
  hosts.put_first(shape.root);
  const bool is_root = shape.rank == shape.root;
  const Rank shares = hosts.shares();
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  plan.talk_among(hosts.here());
  for (Rank share = 0; share < shares; ++share) {
    const Rank leader = hosts.leader_of(share);
    if (leader != hosts.place) plan.send(leader, chunk(Area::input, share, shares));
  }
  for (const Rank share : hosts.own_shares()) {
    reduce_share(plan, hosts, share, hosts.host_of(shape.root), is_root);
  }
  for (Rank share = 0; is_root && share < shares; ++share) {
    const Rank leader = hosts.leader_of(share);
    if (leader != hosts.place) plan.recv(leader, chunk(Area::output, share, shares));
  }
  return std::move(plan).build();
}

Cost hosts_chain_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double h = hosts.count(), n = hosts.most;
  return {.steps = n - 1 + h - 1 + (n > 1 ? 1 : 0),
          .bytes = 1,
          .scratch = 1.0 / hosts.least,
          .between = 1,
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm reduce_hosts_chain = {
    .collective = Collective::reduce,
    .name = "hosts_chain",
    .help = "shares of a host's leaders from host to host towards the root: large messages",
    .needs = {.commutative = true, .hosts = true},
    .plan = plan_hosts_chain,
    .cost = hosts_chain_cost,
    .segments = 64,
};

}  // namespace sluice
