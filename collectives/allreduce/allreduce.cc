// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/allreduce/allreduce.h"

#include "collectives/allreduce/bcube.h"
#include "collectives/allreduce/binomial.h"
#include "collectives/allreduce/direct.h"
#include "collectives/allreduce/double_tree.h"
#include "collectives/allreduce/hosts_doubling.h"
#include "collectives/allreduce/hosts_shares.h"
#include "collectives/allreduce/rabenseifner.h"
#include "collectives/allreduce/recursive_doubling.h"
#include "collectives/allreduce/ring.h"
#include "collectives/allreduce/ring_whole.h"
#include "collectives/allreduce/tree.h"

namespace sluice {

namespace {

constexpr Algorithm row(const char* name, const char* help, Needs needs, Plan (*plan)(const Shape&),
                        Cost (*cost)(const Shape&), Bracketing bracketing = Bracketing::any) {
  return {Collective::allreduce, name, help, needs, plan, cost, bracketing};
}

}  // namespace

std::span<const Algorithm> allreduce_algorithms() {
  static constexpr Algorithm table[] = {
      row("ring", "reduce-scatter and allgather on a ring: large messages, few ranks",
          {.commutative = true}, allreduce_ring, allreduce_ring_cost),
      row("ring_whole", "whole operands round a ring: small messages, two or three ranks", {},
          allreduce_ring_whole, allreduce_ring_whole_cost, Bracketing::balanced),
      row("bcube", "reduce-scatter and allgather by digits of a radix: medium and large messages",
          {}, allreduce_bcube, allreduce_bcube_cost),
      row("recursive_doubling", "exchanges of all data at doubling distances: small messages", {},
          allreduce_recursive_doubling, allreduce_recursive_doubling_cost,
          Bracketing::balanced_on_powers_of_two),
      row("rabenseifner", "halving and doubling: medium messages, powers of two", {},
          allreduce_rabenseifner, allreduce_rabenseifner_cost,
          Bracketing::balanced_on_powers_of_two),
      row("tree", "up and down a tree of a radix, pipelined: many ranks", {}, allreduce_tree,
          allreduce_tree_cost),
      row("double_tree", "two binary trees, half the data on each: large messages, many ranks", {},
          allreduce_double_tree, allreduce_double_tree_cost),
      row("binomial", "up and down a binomial tree: small messages, by the balanced tree", {},
          allreduce_binomial, allreduce_binomial_cost, Bracketing::balanced),
      row("direct", "each rank reduces a chunk for all: large messages, by the balanced tree", {},
          allreduce_direct, allreduce_direct_cost, Bracketing::balanced),
      row("hosts_doubling", "recursive doubling among one leader a host: small messages",
          {.hosts = true}, allreduce_hosts_doubling, allreduce_hosts_doubling_cost),
      row("hosts_bcube", "shares of a host's leaders, bcube among hosts: medium messages",
          {.hosts = true}, allreduce_hosts_bcube, allreduce_hosts_bcube_cost),
      in_segments(
          64, row("hosts_ring", "shares of a host's leaders round rings of hosts: large messages",
                  {.commutative = true, .hosts = true}, allreduce_hosts_ring,
                  allreduce_hosts_ring_cost)),
      in_segments(64, row("hosts_direct",
                          "shares of a host's leaders, from each host to each: large "
                          "messages, few hosts",
                          {.hosts = true}, allreduce_hosts_direct, allreduce_hosts_direct_cost)),
  };
  return table;
}

}  // namespace sluice
