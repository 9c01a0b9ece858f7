// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/reduce.h"

#include "collectives/reduce/binomial.h"
#include "collectives/reduce/chain.h"
#include "collectives/reduce/direct.h"
#include "collectives/reduce/hosts_binomial.h"
#include "collectives/reduce/hosts_chain.h"
#include "collectives/reduce/ring.h"

namespace sluice {

std::span<const Algorithm> reduce_algorithms() {
  static constexpr Algorithm table[] = {
      {Collective::reduce,
       "ring",
       "reduce-scatter on a ring, then each chunk to the root: large messages",
       {.commutative = true},
       reduce_ring,
       reduce_ring_cost},
      {Collective::reduce,
       "chain",
       "pipeline from rank to rank towards the root: very large messages, few ranks",
       {.commutative = true},
       reduce_chain,
       reduce_chain_cost},
      {Collective::reduce,
       "binomial",
       "binomial tree, in rank order: small messages",
       {},
       reduce_binomial,
       reduce_binomial_cost,
       Bracketing::balanced},
      {Collective::reduce,
       "direct",
       "each rank reduces a chunk for the root: large messages, in rank order",
       {},
       reduce_direct,
       reduce_direct_cost,
       Bracketing::balanced},
      {Collective::reduce,
       "hosts_binomial",
       "binomial trees on each host and among the hosts: small messages",
       {.hosts = true},
       reduce_hosts_binomial,
       reduce_hosts_binomial_cost},
      in_segments(64,
                  {Collective::reduce,
                   "hosts_chain",
                   "shares of a host's leaders from host to host towards the root: large messages",
                   {.commutative = true, .hosts = true},
                   reduce_hosts_chain,
                   reduce_hosts_chain_cost}),
  };
  return table;
}

}  // namespace sluice
