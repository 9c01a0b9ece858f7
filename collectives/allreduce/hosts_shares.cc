// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for long vectors: each leader of a host reduces one share of the vector
// over its host. Then the leaders of the same share combine theirs, in as many groups at once as
// there are shares, and each sends the result to its host (multi-leader: Bayatpour et al., SC 2017;
// patterns/hosts.h).
//
// A share is cut into a chunk for each host, and its leaders reduce-scatter and allgather the
// chunks: on a ring (`hosts_ring`), or from each host to each at once (`hosts_direct`), which takes
// fewer steps and keeps order. All messages on both levels are chunks, so they are pipelined
// segment by segment. Medium vectors gain nothing from that: in `hosts_bcube` whole shares go to
// leaders and back, and leaders work as in `bcube`, with the fewest messages.
//
// Cost, for h hosts of n ranks each: n-1 steps to the leaders and 1 back, if n > 1, and between
// them 2(h-1), or 2 if direct, or those of bcube. A host sends 2(h-1)/h x S to others, the least
// possible, and each rank 2(p-1)/p x S in all. If hosts have different numbers of ranks, a rank
// that carries c of L shares on a host of s ranks sends (L - c + c (2(h-1)/h + s - 1))/L x S, and a
// rank without a share S.
// Order: hosts_direct and hosts_bcube keep it if each host's ranks are consecutive; hosts_ring does
// not.
// Scratch: hosts_direct takes a chunk for each operand except two, the others none.
#include "collectives/allreduce/allreduce.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/allreduce/cube.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/hosts_shares.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

// All hosts in ring order, this one last: backwards from the one before this, or forwards from the
// one after it.
std::vector<uint32_t> from_here(const Hosts& hosts, bool backwards) {
  std::vector<uint32_t> order;
  for (uint32_t by = 1; by <= hosts.count(); ++by) {
    const uint32_t distance = by % hosts.count();
    order.push_back(backwards ? behind(hosts.own, distance, hosts.count())
                              : ahead(hosts.own, distance, hosts.count()));
  }
  return order;
}

// The order in which results come: this host's, last in `order`, is first.
std::vector<uint32_t> as_they_come(std::vector<uint32_t> order) {
  std::rotate(order.begin(), order.end() - 1, order.end());
  return order;
}

void exchange_directly(PlanBuilder& plan, const Hosts& hosts, const Piece& sum,
                       const Piece& result) {
  const uint32_t count = hosts.count(), own = hosts.own;
  for (uint32_t distance = 1; distance < count; ++distance) {
    const uint32_t peer = ahead(own, distance, count);
    plan.send(peer, chunk(sum, peer, count));
  }
  reduce_balanced(plan, own, count, chunk(sum, own, count), chunk(result, own, count));
  for (uint32_t distance = 1; distance < count; ++distance) {
    plan.send(ahead(own, distance, count), chunk(result, own, count));
  }
  for (uint32_t distance = 1; distance < count; ++distance) {
    const uint32_t peer = behind(own, distance, count);
    plan.recv(peer, chunk(result, peer, count));
  }
}

// The common part of the costs. steps: between hosts. chunks: scratch, in chunks of a share.
Cost cost_of(const Hosts& hosts, double steps, double chunks) {
  const double h = hosts.count(), n = hosts.most, shares = hosts.shares();
  const double between = 2 * (h - 1) / h;
  double of_leaders = hosts.even() ? 0 : shares;  // a rank without a share sends all
  for (const auto& there : hosts.ranks) {
    const auto ranks = static_cast<Rank>(there.size());
    const double carried = hosts.carried(ranks);
    of_leaders = std::max(of_leaders, shares - carried + carried * (between + ranks - 1));
  }
  return {.steps = n - 1 + steps + (n > 1 ? 1 : 0),
          .bytes = of_leaders / shares,
          .scratch = chunks / (h * hosts.least),
          .between = between,
          .at_most = !hosts.even()};
}

Plan plan_hosts_ring(const Shape& shape) {
  const Hosts hosts(shape);
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const std::vector<uint32_t> order = from_here(hosts, true);
  const Area sums = reduce_shares(plan, hosts, order);
  for (const Rank share : hosts.own_shares()) {
    const Piece result = chunk(Area::output, share, hosts.shares());
    const Piece sum = chunk(sums, share, hosts.shares());
    plan.talk_among(hosts.across(share));
    ring_reduce_scatter(plan, hosts.own, hosts.count(), sum, result);
    ring_allgather(plan, hosts.own, hosts.count(), result);
  }
  share_out(plan, hosts, as_they_come(order));
  return std::move(plan).build();
}

Cost hosts_ring_cost(const Shape& shape) {
  const Hosts hosts(shape);
  return cost_of(hosts, 2.0 * (hosts.count() - 1), 0);
}

Plan plan_hosts_bcube(const Shape& shape) {
  const Hosts hosts(shape);
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const uint32_t in_one_piece[] = {0};
  const Area sums = reduce_shares(plan, hosts, in_one_piece);
  for (const Rank share : hosts.own_shares()) {
    plan.talk_among(hosts.across(share));
    cube_allreduce(plan, hosts.own, Fold::none(hosts.count()), shape.radix,
                   chunk(sums, share, hosts.shares()), chunk(Area::output, share, hosts.shares()));
  }
  share_out(plan, hosts, in_one_piece);
  return std::move(plan).build();
}

Cost hosts_bcube_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const Shape among_hosts{.size = hosts.count(), .radix = shape.radix};
  return cost_of(hosts, allreduce_bcube.cost(among_hosts).steps, 0);
}

Plan plan_hosts_direct(const Shape& shape) {
  const Hosts hosts(shape);
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  const std::vector<uint32_t> order = from_here(hosts, false);
  const Area sums = reduce_shares(plan, hosts, order);
  for (const Rank share : hosts.own_shares()) {
    plan.talk_among(hosts.across(share));
    exchange_directly(plan, hosts, chunk(sums, share, hosts.shares()),
                      chunk(Area::output, share, hosts.shares()));
  }
  share_out(plan, hosts, as_they_come(order));
  return std::move(plan).build();
}

Cost hosts_direct_cost(const Shape& shape) {
  const Hosts hosts(shape);
  return cost_of(hosts, 2, reduce_balanced_slots(hosts.count()));
}

}  // namespace

constexpr Algorithm allreduce_hosts_bcube = {
    .collective = Collective::allreduce,
    .name = "hosts_bcube",
    .help = "shares of a host's leaders, bcube among hosts: medium messages",
    .needs = {.hosts = true},
    .plan = plan_hosts_bcube,
    .cost = hosts_bcube_cost,
};

constexpr Algorithm allreduce_hosts_ring = {
    .collective = Collective::allreduce,
    .name = "hosts_ring",
    .help = "shares of a host's leaders round rings of hosts: large messages",
    .needs = {.commutative = true, .hosts = true},
    .plan = plan_hosts_ring,
    .cost = hosts_ring_cost,
    .segments = 64,
};

constexpr Algorithm allreduce_hosts_direct = {
    .collective = Collective::allreduce,
    .name = "hosts_direct",
    .help = "shares of a host's leaders, from each host to each: large messages, few hosts",
    .needs = {.hosts = true},
    .plan = plan_hosts_direct,
    .cost = hosts_direct_cost,
    .segments = 64,
};

}  // namespace sluice
