// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/hosts_shares.h"

#include "collectives/patterns/chunk.h"

namespace sluice {

namespace {

// One of so many chunks of the share of a leader.
struct Cut {
  const Hosts& hosts;
  uint32_t index, of;

  Piece of_share(Area area, Rank leader) const {
    return chunk(chunk(area, leader, hosts.leaders()), index, of);
  }
};

// Operands join the sum from its left and its right, nearest first, so that it is of a run of
// ranks.
void gather(PlanBuilder& plan, const Hosts& hosts, const Cut& cut) {
  const Piece total = cut.of_share(Area::output, hosts.place);
  Piece sum = cut.of_share(Area::input, hosts.place);
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
  for (const uint32_t index : order) {
    const Cut cut{hosts, index, static_cast<uint32_t>(order.size())};
    for (Rank leader = 0; leader < hosts.leaders(); ++leader) {
      if (leader == hosts.place) continue;
      plan.send(leader, cut.of_share(Area::input, leader));
    }
    if (hosts.leads()) gather(plan, hosts, cut);
  }
  return hosts.here().size() > 1 ? Area::output : Area::input;
}

void share_out(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order) {
  plan.talk_among(hosts.here());
  for (const uint32_t index : order) {
    const Cut cut{hosts, index, static_cast<uint32_t>(order.size())};
    for (Rank to = 0; hosts.leads() && to < hosts.here().size(); ++to) {
      if (to == hosts.place) continue;
      plan.send(to, cut.of_share(Area::output, hosts.place));
    }
    for (Rank leader = 0; leader < hosts.leaders(); ++leader) {
      if (leader == hosts.place) continue;
      plan.recv(leader, cut.of_share(Area::output, leader));
    }
  }
}

}  // namespace sluice
