// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on two levels for short blocks: ranks send their blocks to one leader a host, the
// leaders exchange them as in `bruck`, with all blocks of a host in one message, and each leader
// sends them on to its host (two-level: Mamidala et al., EuroPVM/MPI 2006).
//
// Cost, for h hosts of n ranks each: the steps of bruck among h ranks, and 2 more if n > 1. A
// leader sends (p-n)/p x S to other hosts, the least possible, and (n-1)(p-1)/p x S on its own
// host. If hosts have different numbers of ranks these are bounds, with n the most ranks of a host.
// Scratch: none.
#include "collectives/allgather/allgather.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/allgather/blocks.h"
#include "collectives/patterns/hosts.h"

namespace sluice {

namespace {

// The blocks of `count` hosts from `first` on, round the ring.
std::vector<Piece> blocks_of(const Shape& shape, const Hosts& hosts, uint32_t first,
                             uint32_t count) {
  std::vector<Piece> blocks;
  for (uint32_t i = 0; i < count; ++i) {
    for (const Rank rank : hosts.ranks[ahead(first, i, hosts.count())]) {
      blocks.push_back(gathered_block(shape, rank));
    }
  }
  return blocks;
}

std::vector<Piece> all_but(const Shape& shape, Rank out) {
  std::vector<Piece> blocks;
  for (Rank rank = 0; rank < shape.size; ++rank) {
    if (rank != out) blocks.push_back(gathered_block(shape, rank));
  }
  return blocks;
}

void lead(PlanBuilder& plan, const Shape& shape, const Hosts& hosts) {
  const auto& here = hosts.here();
  for (Rank place = 1; place < here.size(); ++place) {
    plan.recv(place, gathered_block(shape, here[place]));
  }
  plan.talk_among(hosts.across(0));
  for (uint32_t have = 1; have < hosts.count(); have *= 2) {
    const uint32_t count = std::min(have, hosts.count() - have);
    const uint32_t source = ahead(hosts.own, have, hosts.count());
    plan.send(behind(hosts.own, have, hosts.count()), blocks_of(shape, hosts, hosts.own, count));
    plan.recv(source, blocks_of(shape, hosts, source, count));
  }
  plan.talk_among(here);
  for (Rank place = 1; place < here.size(); ++place) {
    plan.send(place, all_but(shape, here[place]));
  }
}

Plan plan_hosts_bruck(const Shape& shape) {
  const Hosts hosts(shape);
  PlanBuilder plan(alias_of(Collective::allgather, shape.rank));
  plan.talk_among(hosts.here());
  if (hosts.place == 0) {
    lead(plan, shape, hosts);
  } else {
    plan.send(0, all_input);
    plan.recv(0, all_but(shape, shape.rank));
  }
  keep_own_block(shape, plan);
  return std::move(plan).build();
}

Cost hosts_bruck_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double p = shape.size, h = hosts.count(), n = hosts.most;
  const double between = (h - 1) * n / p;
  return {.steps = allgather_bruck.cost({.size = hosts.count()}).steps + (n > 1 ? 2 : 0),
          .bytes = between + (n - 1) * (p - 1) / p,
          .between = between,
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm allgather_hosts_bruck = {
    .collective = Collective::allgather,
    .name = "hosts_bruck",
    .help = "bruck among one leader a host: short blocks",
    .needs = {.hosts = true},
    .plan = plan_hosts_bruck,
    .cost = hosts_bruck_cost,
};

constexpr Algorithm allgatherv_hosts_bruck = serving(Collective::allgatherv, allgather_hosts_bruck);

}  // namespace sluice
