// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allgather/allgather.h"

#include "collectives/allgather/bruck.h"
#include "collectives/allgather/hosts_bruck.h"
#include "collectives/allgather/hosts_shares.h"
#include "collectives/allgather/recursive_doubling.h"
#include "collectives/allgather/ring.h"

namespace sluice {

namespace {

constexpr Algorithm row(Collective collective, const char* name, const char* help, Needs needs,
                        Plan (*plan)(const Shape&), Cost (*cost)(const Shape&)) {
  return {collective, name, help, needs, plan, cost};
}

}  // namespace

std::span<const Algorithm> allgather_algorithms() {
  static constexpr Algorithm table[] = {
      row(Collective::allgather, "ring",
          "blocks go round both ways at once, half the ring each: long blocks", {}, allgather_ring,
          allgather_ring_cost),
      row(Collective::allgather, "bruck", "log2 p rounds for any number of ranks: short blocks", {},
          allgather_bruck, allgather_bruck_cost),
      row(Collective::allgather, "recursive_doubling",
          "log2 p exchanges of all that each has: short blocks, powers of two", {},
          allgather_recursive_doubling, allgather_recursive_doubling_cost),
      row(Collective::allgather, "hosts_bruck", "bruck among one leader a host: short blocks",
          {.hosts = true}, allgather_hosts_bruck, allgather_hosts_bruck_cost),
      in_segments(64, row(Collective::allgather, "hosts_ring",
                          "each leader's blocks round rings of hosts: long blocks", {.hosts = true},
                          allgather_hosts_ring, allgather_hosts_ring_cost)),
      in_segments(64, row(Collective::allgather, "hosts_direct",
                          "each leader's blocks from each host to each: long blocks, few hosts",
                          {.hosts = true}, allgather_hosts_direct, allgather_hosts_direct_cost)),
      row(Collective::allgatherv, "ring",
          "blocks go round both ways at once, half the ring each: long blocks", {}, allgather_ring,
          allgather_ring_cost),
      row(Collective::allgatherv, "bruck", "log2 p rounds for any number of ranks: short blocks",
          {}, allgather_bruck, allgather_bruck_cost),
      row(Collective::allgatherv, "recursive_doubling",
          "log2 p exchanges of all that each has: short blocks, powers of two", {},
          allgather_recursive_doubling, allgather_recursive_doubling_cost),
      row(Collective::allgatherv, "hosts_bruck", "bruck among one leader a host: short blocks",
          {.hosts = true}, allgather_hosts_bruck, allgather_hosts_bruck_cost),
      in_segments(64, row(Collective::allgatherv, "hosts_ring",
                          "each leader's blocks round rings of hosts: long blocks", {.hosts = true},
                          allgather_hosts_ring, allgather_hosts_ring_cost)),
      in_segments(64, row(Collective::allgatherv, "hosts_direct",
                          "each leader's blocks from each host to each: long blocks, few hosts",
                          {.hosts = true}, allgather_hosts_direct, allgather_hosts_direct_cost)),
  };
  return table;
}

}  // namespace sluice
