// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/hosts_shares.h"

#include "collectives/patterns/chunk.h"

namespace sluice {

namespace {

// The chunk of a host, of the share of a leader.
Piece chunk_of(Area area, const Hosts& hosts, Rank leader, uint32_t host) {
  return chunk(chunk(area, leader, hosts.leaders()), host, hosts.count());
}

// Operands join the sum from its left and its right, nearest first, so that it is of a run of
// ranks.
void gather(PlanBuilder& plan, const Hosts& hosts, uint32_t host) {
  const Piece total = chunk_of(Area::output, hosts, hosts.place, host);
  Piece sum = chunk_of(Area::input, hosts, hosts.place, host);
  const auto take = [&](Rank from) {
    plan.recv_reduce(from, sum, total, from < hosts.place);
    sum = total;
  };
  for (Rank from = hosts.place; from-- > 0;) take(from);
  for (Rank from = hosts.place + 1; from < hosts.size_of(hosts.own); ++from) take(from);
}

}  // namespace

Area reduce_shares(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order) {
  plan.talk_among(hosts.here());
  for (const uint32_t host : order) {
    for (Rank leader = 0; leader < hosts.leaders(); ++leader) {
      if (leader == hosts.place) continue;
      plan.send(leader, chunk_of(Area::input, hosts, leader, host));
    }
    if (hosts.leads()) gather(plan, hosts, host);
  }
  return hosts.here().size() > 1 ? Area::output : Area::input;
}

void share_out(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order) {
  plan.talk_among(hosts.here());
  for (const uint32_t host : order) {
    for (Rank to = 0; hosts.leads() && to < hosts.here().size(); ++to) {
      if (to == hosts.place) continue;
      plan.send(to, chunk_of(Area::output, hosts, hosts.place, host));
    }
    for (Rank leader = 0; leader < hosts.leaders(); ++leader) {
      if (leader == hosts.place) continue;
      plan.recv(leader, chunk_of(Area::output, hosts, leader, host));
    }
  }
}

}  // namespace sluice
