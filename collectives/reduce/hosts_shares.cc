// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/hosts_shares.h"

#include "collectives/patterns/chunk.h"

namespace sluice {

namespace {

// Chunk `index` of `of` of a share.
struct Cut {
  const Hosts& hosts;
  uint32_t index, of;

  Piece of_share(Area area, Rank share) const {
    return chunk(chunk(area, share, hosts.shares()), index, of);
  }
};

// Adds operands to the left and to the right of the sum, nearest first, so it always stands for a
// run of ranks.
void gather(PlanBuilder& plan, const Hosts& hosts, const Cut& cut, Rank share) {
  const Piece total = cut.of_share(Area::output, share);
  Piece sum = cut.of_share(Area::input, share);
  const auto add_operand_of = [&](Rank from) {
    plan.recv_reduce(from, sum, total, from < hosts.place);
    sum = total;
  };
  for (Rank from = hosts.place; from-- > 0;) add_operand_of(from);
  for (Rank from = hosts.place + 1; from < hosts.size_of(hosts.own); ++from) add_operand_of(from);
}

}  // namespace

Area reduce_shares(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order) {
  plan.talk_among(hosts.here());
  for (const uint32_t index : order) {
    const Cut cut{hosts, index, static_cast<uint32_t>(order.size())};
    for (Rank share = 0; share < hosts.shares(); ++share) {
      const Rank leader = hosts.leader_of(share);
      if (leader != hosts.place) plan.send(leader, cut.of_share(Area::input, share));
    }
    for (const Rank share : hosts.own_shares()) gather(plan, hosts, cut, share);
  }
  return hosts.here().size() > 1 ? Area::output : Area::input;
}

void share_out(PlanBuilder& plan, const Hosts& hosts, std::span<const uint32_t> order) {
  plan.talk_among(hosts.here());
  for (const uint32_t index : order) {
    const Cut cut{hosts, index, static_cast<uint32_t>(order.size())};
    for (const Rank share : hosts.own_shares()) {
      for (Rank to = 0; to < hosts.here().size(); ++to) {
        if (to != hosts.place) plan.send(to, cut.of_share(Area::output, share));
      }
    }
    for (Rank share = 0; share < hosts.shares(); ++share) {
      const Rank leader = hosts.leader_of(share);
      if (leader != hosts.place) plan.recv(leader, cut.of_share(Area::output, share));
    }
  }
}

}  // namespace sluice
