// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce_scatter/reduce_scatter.h"

#include "collectives/reduce_scatter/direct.h"
#include "collectives/reduce_scatter/hosts_shares.h"
#include "collectives/reduce_scatter/recursive_halving.h"
#include "collectives/reduce_scatter/ring.h"

namespace sluice {

namespace {

constexpr Algorithm row(const char* name, const char* help, Needs needs, Plan (*plan)(const Shape&),
                        Cost (*cost)(const Shape&), Bracketing bracketing = Bracketing::any) {
  return {Collective::reduce_scatter, name, help, needs, plan, cost, bracketing};
}

}  // namespace

std::span<const Algorithm> reduce_scatter_algorithms() {
  static constexpr Algorithm table[] = {
      row("ring", "partial results go round from neighbour to neighbour: long vectors",
          {.commutative = true}, reduce_scatter_ring, reduce_scatter_ring_cost),
      row("recursive_halving", "log2 p exchanges of half of what is left: short vectors", {},
          reduce_scatter_recursive_halving, reduce_scatter_recursive_halving_cost,
          Bracketing::balanced_on_powers_of_two),
      row("direct", "each sends to each, and reduces by the balanced tree: few ranks", {},
          reduce_scatter_direct, reduce_scatter_direct_cost, Bracketing::balanced),
      in_segments(64,
                  row("hosts_ring", "shares of a host's leaders round rings of hosts: many hosts",
                      {.commutative = true, .hosts = true}, reduce_scatter_hosts_ring,
                      reduce_scatter_hosts_ring_cost)),
      in_segments(
          64,
          row("hosts_direct", "shares of a host's leaders, from each host to each: large messages",
              {.hosts = true}, reduce_scatter_hosts_direct, reduce_scatter_hosts_direct_cost)),
  };
  return table;
}

}  // namespace sluice
