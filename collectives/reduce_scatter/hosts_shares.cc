// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce-scatter on two levels for long vectors: the leaders of a share reduce the blocks of some
// ranks of each host (only their own, if all hosts have as many ranks) over their host, and then
// among the hosts (multi-leader: Bayatpour et al., SC 2017; patterns/hosts.h): on a ring
// (`hosts_ring`), or from each host to each at once (`hosts_direct`), in fewer steps and in order.
// Each host sends each block to other hosts once, the least possible, however ranks are placed.
//
// Cost, for h hosts of n ranks each: n-1 steps inside hosts, and h-1 between them, or 1 if direct;
// each rank sends (p-1)/p x S, and each host (h-1)/h x S to others. If hosts have different numbers
// of ranks, one more step brings blocks to ranks without a share, and a rank may send S.
// Order: hosts_direct keeps it if each host's ranks are consecutive; hosts_ring does not.
// Scratch: the blocks that a rank carries except its own, (h-1)/p x S; for hosts_direct one more
// for each other host's operand except one.
#include "collectives/reduce_scatter/reduce_scatter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"
#include "collectives/reduce/phases.h"
#include "collectives/reduce_scatter/partials.h"

namespace sluice {

namespace {

class Scattering {
 public:
  explicit Scattering(const Shape& shape) : hosts_(shape), partials_(shape, plan_) {}

  // Reduces the blocks of each host's ranks on this host, in the order in which the ring needs
  // them: first those of the host before this one, and so on backwards. This host's are last.
  void reduce_here() {
    plan_.talk_among(hosts_.here());
    for (uint32_t distance = 1; distance <= hosts_.count(); ++distance) {
      const uint32_t host = behind(hosts_.own, distance, hosts_.count());
      for (Rank share = 0; share < hosts_.shares(); ++share) {
        const std::vector<Rank> blocks = blocks_of(host, share);
        const Rank leader = hosts_.leader_of(share);
        if (leader != hosts_.place && !blocks.empty()) plan_.send(leader, partials_.of(blocks));
      }
      for (const Rank share : hosts_.own_shares()) gather(blocks_of(host, share));
    }
  }

  void go_round(Rank share) {
    const uint32_t own = hosts_.own, count = hosts_.count();
    plan_.talk_among(hosts_.across(share));
    for (uint32_t hop = 1; hop < count; ++hop) {
      const std::vector<Rank> outgoing = blocks_of(behind(own, hop, count), share);
      if (!outgoing.empty()) plan_.send(next_in_ring(own, count), partials_.of(outgoing));
      const uint32_t previous = previous_in_ring(own, count);
      partials_.reduce_onto(previous, blocks_of(behind(own, hop + 1, count), share),
                            previous < own);
    }
  }

  void exchange(Rank share) {
    const uint32_t own = hosts_.own, count = hosts_.count();
    plan_.talk_among(hosts_.across(share));
    for (uint32_t distance = 1; distance < count; ++distance) {
      const uint32_t host = ahead(own, distance, count);
      for (const Rank block : blocks_of(host, share)) plan_.send(host, partials_.of(block));
    }
    for (const Rank block : blocks_of(own, share)) {
      const Piece sum = partials_.of(block);
      reduce_balanced(plan_, own, count, sum, partials_.renew(block));
    }
  }

  // Sends results to ranks that carry no share.
  Plan hand_out() && {
    plan_.talk_among(hosts_.here());
    const Rank shares = hosts_.shares();
    for (const Rank share : hosts_.own_shares()) {
      for (Rank place = share; place < hosts_.here().size(); place += shares) {
        if (place != hosts_.place) plan_.send(place, partials_.of(hosts_.here()[place]));
      }
    }
    if (hosts_.place >= shares) plan_.recv(hosts_.place % shares, all_output);
    return std::move(plan_).build();
  }

  std::vector<Rank> own_shares() const { return hosts_.own_shares(); }

 private:
  // None if the host has too few ranks for the share.
  std::vector<Rank> blocks_of(uint32_t host, Rank share) const {
    std::vector<Rank> blocks;
    for (Rank place = share; place < hosts_.size_of(host); place += hosts_.shares()) {
      blocks.push_back(hosts_.ranks[host][place]);
    }
    return blocks;
  }

  // Adds operands to the left and to the right of the sum, nearest first, so it always stands for a
  // run of ranks.
  void gather(const std::vector<Rank>& blocks) {
    for (Rank from = hosts_.place; from-- > 0;) partials_.reduce_onto(from, blocks, true);
    for (Rank from = hosts_.place + 1; from < hosts_.here().size(); ++from) {
      partials_.reduce_onto(from, blocks, false);
    }
  }

  const Hosts hosts_;
  PlanBuilder plan_;
  Partials partials_;
};

Cost cost_of(const Shape& shape, double steps, uint32_t blocks) {
  const Hosts hosts(shape);
  const double p = shape.size, h = hosts.count(), n = hosts.most;
  const auto blocks_in_share = [&](const auto& there) {
    return (static_cast<Rank>(there.size()) + hosts.shares() - 1) / hosts.shares();
  };
  Rank carried = 0;
  for (const auto& there : hosts.ranks) carried += blocks_in_share(there);
  carried = std::min(carried * hosts.carried(hosts.least), shape.size);
  const Rank most_at_home = (hosts.most + hosts.shares() - 1) / hosts.shares();
  return {.steps = n - 1 + steps + (hosts.even() ? 0 : 1),
          .bytes = hosts.even() ? (p - 1) / p : 1,
          .scratch = (carried - 1.0 + most_at_home * blocks) / p,
          .between = hosts.even() ? (h - 1) / h : (p - hosts.least) / p,
          .at_most = !hosts.even()};
}

Plan plan_hosts_ring(const Shape& shape) {
  Scattering scattering(shape);
  scattering.reduce_here();
  for (const Rank share : scattering.own_shares()) scattering.go_round(share);
  return std::move(scattering).hand_out();
}

Cost hosts_ring_cost(const Shape& shape) {
  return cost_of(shape, count_hosts(shape.hosts) - 1.0, 0);
}

Plan plan_hosts_direct(const Shape& shape) {
  Scattering scattering(shape);
  scattering.reduce_here();
  for (const Rank share : scattering.own_shares()) scattering.exchange(share);
  return std::move(scattering).hand_out();
}

Cost hosts_direct_cost(const Shape& shape) {
  return cost_of(shape, 1, reduce_balanced_slots(count_hosts(shape.hosts)));
}

}  // namespace

constexpr Algorithm reduce_scatter_hosts_ring = {
    .collective = Collective::reduce_scatter,
    .name = "hosts_ring",
    .help = "shares of a host's leaders round rings of hosts: many hosts",
    .needs = {.commutative = true, .hosts = true},
    .plan = plan_hosts_ring,
    .cost = hosts_ring_cost,
    .segments = 64,
};

constexpr Algorithm reduce_scatter_hosts_direct = {
    .collective = Collective::reduce_scatter,
    .name = "hosts_direct",
    .help = "shares of a host's leaders, from each host to each: large messages",
    .needs = {.hosts = true},
    .plan = plan_hosts_direct,
    .cost = hosts_direct_cost,
    .segments = 64,
};

}  // namespace sluice
