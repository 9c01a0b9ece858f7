// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/broadcast/broadcast.h"

#include "collectives/broadcast/binomial.h"
#include "collectives/broadcast/chain.h"
#include "collectives/broadcast/hosts_binomial.h"
#include "collectives/broadcast/hosts_chain.h"
#include "collectives/broadcast/one_to_all.h"
#include "collectives/broadcast/scatter_allgather.h"

namespace sluice {

namespace {

constexpr Algorithm row(const char* name, const char* help, Needs needs, Plan (*plan)(const Shape&),
                        Cost (*cost)(const Shape&)) {
  return {Collective::broadcast, name, help, needs, plan, cost};
}

}  // namespace

std::span<const Algorithm> broadcast_algorithms() {
  static constexpr Algorithm table[] = {
      row("one_to_all", "the root sends to each: short vectors, few ranks", {},
          broadcast_one_to_all, broadcast_one_to_all_cost),
      row("binomial", "down a tree of log2 p levels: short vectors", {}, broadcast_binomial,
          broadcast_binomial_cost),
      row("chain", "from rank to rank, pipelined by segments: long vectors, few ranks", {},
          broadcast_chain, broadcast_chain_cost),
      row("scatter_allgather", "scatter, then ring allgather: long vectors, many ranks", {},
          broadcast_scatter_allgather, broadcast_scatter_allgather_cost),
      row("hosts_binomial", "binomial trees among the hosts and on each: short vectors",
          {.hosts = true}, broadcast_hosts_binomial, broadcast_hosts_binomial_cost),
      in_segments(64,
                  row("hosts_chain", "shares of a host's leaders from host to host: long vectors",
                      {.hosts = true}, broadcast_hosts_chain, broadcast_hosts_chain_cost)),
  };
  return table;
}

}  // namespace sluice
