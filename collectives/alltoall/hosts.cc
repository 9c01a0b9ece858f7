// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoall on two levels for short blocks: all blocks from one host to another go in one message.
// On each host one rank gathers the blocks for host k and distributes those from host k, a
// different rank for each k if there are enough (Traeff, Improved MPI all-to-all communication on a
// Giganet SMP cluster, EuroPVM/MPI 2002). Long blocks gain nothing: `linear` sends each once,
// straight to its receiver.
//
// Cost, for h hosts of n ranks each: 3 steps, and h(h-1) messages between hosts instead of p(p-n).
// A host sends n(p-n)/p x S to others, the least possible. A rank that gathers for g of them sends
// n-1 + (h-1-g)n + g n^2 blocks, and g n(n-1) that it distributes. Hosts with different numbers of
// ranks are counted in the same way, host by host.
// Scratch: 2 g n(n-1) blocks, in transit.
#include "collectives/alltoall/alltoall.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/patterns/hosts.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Piece block(Area area, Rank rank) { return {area, rank, {}}; }

// The place on `host` of the rank that gathers the blocks for `other`, and distributes those from
// it.
Rank gatherer(const Hosts& hosts, uint32_t host, uint32_t other) {
  return (behind(other, host, hosts.count()) - 1) % hosts.size_of(host);
}

std::vector<Piece> blocks(Area area, const std::vector<Rank>& ranks) {
  std::vector<Piece> found;
  for (const Rank rank : ranks) found.push_back(block(area, rank));
  return found;
}

class Exchange {
 public:
  Exchange(PlanBuilder& plan, const Shape& shape, const Hosts& hosts, uint32_t other)
      : plan_(plan),
        rank_(shape.rank),
        hosts_(hosts),
        there_(hosts.ranks[other]),
        other_(other),
        gatherer_(gatherer(hosts, hosts.own, other)) {}

  void run() {
    plan_.talk_among(hosts_.here());
    if (hosts_.place != gatherer_) {
      plan_.send(gatherer_, blocks(Area::input, there_));
      plan_.recv(gatherer_, blocks(Area::output, there_));
      return;
    }
    const std::vector<Piece> out = gather();
    const Rank peer = there_[gatherer(hosts_, other_, hosts_.own)];
    plan_.talk_among({});
    plan_.send(peer, out);
    const std::vector<Piece> in = places_of_arrivals();
    plan_.recv(peer, in);
    plan_.talk_among(hosts_.here());
    hand_out(in);
  }

 private:
  std::vector<Piece> scratch() {
    std::vector<Piece> some;
    for (size_t i = 0; i < there_.size(); ++i) {
      some.push_back(plan_.scratch(block(Area::input, rank_)));
    }
    return some;
  }

  // Blocks for the other host, ordered by sender here, then by receiver there.
  std::vector<Piece> gather() {
    std::vector<Piece> all;
    for (Rank place = 0; place < hosts_.here().size(); ++place) {
      const bool own = place == hosts_.place;
      const std::vector<Piece> some = own ? blocks(Area::input, there_) : scratch();
      if (!own) plan_.recv(place, some);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  // Places for blocks from the other host, ordered by sender there, then by receiver here.
  std::vector<Piece> places_of_arrivals() {
    std::vector<Piece> all;
    for (const Rank from : there_) {
      for (const Rank to : hosts_.here()) {
        all.push_back(to == rank_ ? block(Area::output, from)
                                  : plan_.scratch(block(Area::input, rank_)));
      }
    }
    return all;
  }

  void hand_out(const std::vector<Piece>& arrived) {
    const size_t width = hosts_.here().size();
    for (Rank to = 0; to < width; ++to) {
      if (to == hosts_.place) continue;
      std::vector<Piece> some;
      for (size_t from = 0; from < there_.size(); ++from) {
        some.push_back(arrived[from * width + to]);
      }
      plan_.send(to, some);
    }
  }

  PlanBuilder& plan_;
  const Rank rank_;
  const Hosts& hosts_;
  const std::vector<Rank>& there_;
  const uint32_t other_;
  const Rank gatherer_;
};

// The blocks that a rank sends, and those that it keeps in scratch.
struct Load {
  double sent, scratch;
};
Load load_of(const Hosts& hosts, uint32_t host, Rank place) {
  const double here = hosts.size_of(host);
  Load load{here - 1, 0};
  for (uint32_t other = 0; other < hosts.count(); ++other) {
    if (other == host) continue;
    const double there = hosts.size_of(other);
    if (gatherer(hosts, host, other) != place) {
      load.sent += there;
      continue;
    }
    load.sent += there * here + there * (here - 1);
    load.scratch += 2 * there * (here - 1);
  }
  return load;
}

Plan plan_hosts(const Shape& shape) {
  const Hosts hosts(shape);
  PlanBuilder plan(alias_of(Collective::alltoall, shape.rank));
  for (uint32_t distance = 1; distance < hosts.count(); ++distance) {
    Exchange(plan, shape, hosts, ahead(hosts.own, distance, hosts.count())).run();
  }
  plan.talk_among({});
  for (const Rank peer : hosts.here()) {
    if (peer == shape.rank) continue;
    plan.send(peer, block(Area::input, peer));
    plan.recv(peer, block(Area::output, peer));
  }
  plan.copy(block(Area::input, shape.rank), block(Area::output, shape.rank));
  return std::move(plan).build();
}

Cost hosts_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double p = shape.size;
  Cost cost{.steps = 3, .at_most = !hosts.even()};
  for (uint32_t host = 0; host < hosts.count(); ++host) {
    const double here = hosts.size_of(host);
    cost.between = std::max(cost.between, here * (p - here) / p);
    for (Rank place = 0; place < hosts.size_of(host); ++place) {
      const Load load = load_of(hosts, host, place);
      cost.bytes = std::max(cost.bytes, load.sent / p);
      cost.scratch = std::max(cost.scratch, load.scratch / p);
    }
  }
  return cost;
}

}  // namespace

constexpr Algorithm alltoall_hosts = {
    .collective = Collective::alltoall,
    .name = "hosts",
    .help = "one message from each host to each: short blocks",
    .needs = {.uniform = true, .hosts = true},
    .plan = plan_hosts,
    .cost = hosts_cost,
};

constexpr Algorithm alltoallv_hosts = {
    .collective = Collective::alltoallv,
    .name = "hosts",
    .help = "one message from each host to each, of cells for short blocks; others straight",
    .needs = {.hosts = true},
    .plan = plan_hosts,
    .cost = hosts_cost,
    .cell = 512,
    .beside = &alltoallv_linear,
};

}  // namespace sluice
