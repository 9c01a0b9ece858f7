// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather on two levels for long blocks: each leader of a host sends the blocks of some of its
// host's ranks (only its own, if all hosts have as many ranks) to the leaders of the same share on
// the other hosts, and forwards what it receives from them to its host (multi-leader: Kandalla,
// Subramoni, Santhanaraman, Koop and Panda, Designing multi-leader-based allgather algorithms for
// multi-core clusters, IPDPS 2009).
//
// Between hosts blocks go round a ring, in both directions, as in `ring` (`hosts_ring`), or from
// each host to each at once (`hosts_direct`), in fewer steps. Each block goes to each other host
// once, the least possible.
//
// Cost, for h hosts of n ranks each: floor(h/2) steps between hosts, or 1 if direct, and 1 more
// inside hosts if n > 1; each rank sends (p-1)/p x S, and each host (h-1)/h x S to others. If hosts
// have different numbers of ranks, one more step brings blocks to leaders, and a rank that carries
// c of L shares on a host of s ranks sends at most (h-1 + h(s-1)) c ceil(n/L)/p x S, with n the
// most ranks of a host.
// Scratch: none.
#include "collectives/allgather/allgather.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/allgather/blocks.h"
#include "collectives/patterns/hosts.h"

namespace sluice {

namespace {

class Gathering {
 public:
  explicit Gathering(const Shape& shape)
      : shape_(shape), hosts_(shape), plan_(alias_of(Collective::allgather, shape.rank)) {
    plan_.talk_among(hosts_.here());
    bring_to_leaders();
    hand_on(hosts_.own);
  }

  const Hosts& hosts() const { return hosts_; }

  // Leaders send their blocks of host `outgoing` to host `to`, receive their blocks of `incoming`
  // from host `from`, and send these on to the other ranks here.
  void pass_on(uint32_t from, uint32_t incoming, uint32_t outgoing, uint32_t to) {
    for (const Rank share : hosts_.own_shares()) {
      plan_.talk_among(hosts_.across(share));
      send(to, blocks_of(outgoing, share, no_rank));
      recv(from, blocks_of(incoming, share, no_rank));
    }
    hand_on(incoming);
  }

  Plan build() && {
    keep_own_block(shape_, plan_);
    return std::move(plan_).build();
  }

 private:
  // The blocks of a host in a share, except that of rank `out`. None if the host has too few ranks
  // for the share.
  std::vector<Piece> blocks_of(uint32_t host, Rank share, Rank out) const {
    std::vector<Piece> blocks;
    for (Rank place = share; place < hosts_.size_of(host); place += hosts_.shares()) {
      const Rank rank = hosts_.ranks[host][place];
      if (rank != out) blocks.push_back(gathered_block(shape_, rank));
    }
    return blocks;
  }

  // Sends nothing if there are no blocks: a message without pieces would be a token.
  void send(Rank to, const std::vector<Piece>& blocks) {
    if (!blocks.empty()) plan_.send(to, blocks);
  }
  void recv(Rank from, const std::vector<Piece>& blocks) {
    if (!blocks.empty()) plan_.recv(from, blocks);
  }

  // Ranks without a share send their block to a leader.
  void bring_to_leaders() {
    const Rank shares = hosts_.shares();
    if (hosts_.place >= shares) plan_.send(hosts_.place % shares, all_input);
    if (hosts_.place >= shares) return;
    for (Rank place = hosts_.place + shares; place < hosts_.here().size(); place += shares) {
      plan_.recv(place, gathered_block(shape_, hosts_.here()[place]));
    }
  }

  // Leaders send the blocks that they have of a host to the other ranks here.
  void hand_on(uint32_t host) {
    plan_.talk_among(hosts_.here());
    for (const Rank share : hosts_.own_shares()) {
      for (Rank to = 0; to < hosts_.here().size(); ++to) {
        if (to != hosts_.place) send(to, blocks_of(host, share, hosts_.here()[to]));
      }
    }
    for (Rank share = 0; share < hosts_.shares(); ++share) {
      const Rank leader = hosts_.leader_of(share);
      if (leader != hosts_.place) recv(leader, blocks_of(host, share, shape_.rank));
    }
  }

  const Shape& shape_;
  const Hosts hosts_;
  PlanBuilder plan_;
};

Cost cost_of(const Hosts& hosts, Rank size, double steps) {
  const double p = size, h = hosts.count(), n = hosts.most;
  const Rank blocks = (hosts.most + hosts.shares() - 1) / hosts.shares();
  double sent = 0;
  for (const auto& there : hosts.ranks) {
    const auto ranks = static_cast<Rank>(there.size());
    sent = std::max(sent, (h - 1 + h * (ranks - 1)) * hosts.carried(ranks) * blocks);
  }
  return {.steps = steps + (n > 1 ? 1 : 0) + (hosts.even() ? 0 : 1),
          .bytes = sent / p,
          .between = (h - 1) * n / p,
          .at_most = !hosts.even()};
}

Plan plan_hosts_ring(const Shape& shape) {
  Gathering gathering(shape);
  const uint32_t own = gathering.hosts().own, count = gathering.hosts().count();
  const uint32_t next = next_in_ring(own, count), previous = previous_in_ring(own, count);
  for (uint32_t hop = 1; hop <= count / 2; ++hop) {
    gathering.pass_on(previous, behind(own, hop, count), behind(own, hop - 1, count), next);
    if (2 * hop == count) break;  // what is opposite comes from one side only
    gathering.pass_on(next, ahead(own, hop, count), ahead(own, hop - 1, count), previous);
  }
  return std::move(gathering).build();
}

Cost hosts_ring_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const Rank hops = hosts.count() / 2;
  return cost_of(hosts, shape.size, hops);
}

Plan plan_hosts_direct(const Shape& shape) {
  Gathering gathering(shape);
  const uint32_t own = gathering.hosts().own, count = gathering.hosts().count();
  for (uint32_t distance = 1; distance < count; ++distance) {
    const uint32_t from = behind(own, distance, count);
    gathering.pass_on(from, from, own, ahead(own, distance, count));
  }
  return std::move(gathering).build();
}

Cost hosts_direct_cost(const Shape& shape) { return cost_of(Hosts(shape), shape.size, 1); }

}  // namespace

constexpr Algorithm allgather_hosts_ring = {
    .collective = Collective::allgather,
    .name = "hosts_ring",
    .help = "each leader's blocks round rings of hosts: long blocks",
    .needs = {.hosts = true},
    .plan = plan_hosts_ring,
    .cost = hosts_ring_cost,
    .segments = 64,
};

constexpr Algorithm allgather_hosts_direct = {
    .collective = Collective::allgather,
    .name = "hosts_direct",
    .help = "each leader's blocks from each host to each: long blocks, few hosts",
    .needs = {.hosts = true},
    .plan = plan_hosts_direct,
    .cost = hosts_direct_cost,
    .segments = 64,
};

constexpr Algorithm allgatherv_hosts_ring = serving(Collective::allgatherv, allgather_hosts_ring);

constexpr Algorithm allgatherv_hosts_direct =
    serving(Collective::allgatherv, allgather_hosts_direct);

}  // namespace sluice
