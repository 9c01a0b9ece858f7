// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for short vectors: reduces up a binomial tree to one leader a host, runs
// recursive doubling among the leaders, and broadcasts down the tree (the two-level scheme of
// MVAPICH2 and others: Karonis et al., IPDPS 2000; Mamidala, Vishnu and Panda, Efficient shared
// memory and RDMA based design for MPI_Allgather over InfiniBand, EuroPVM/MPI 2006).
//
// Cost, for h hosts of n ranks each: ceil(log2 n) + log2 h + floor(log2 n) steps, and two more if h
// is not a power of two. A leader sends (ceil(log2 n) + log2 h) x S, and a host log2 h x S to
// others; both send one S more if h is not a power of two. Hosts with fewer ranks than n need less.
// Order: kept if each host's ranks are consecutive.
// Scratch: S.
#include "collectives/allreduce/allreduce.h"

#include <bit>
#include <utility>

#include "collectives/allreduce/recursive_doubling.h"
#include "collectives/allreduce/up_and_down.h"
#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

namespace {

Plan plan_hosts_doubling(const Shape& shape) {
  const Hosts hosts(shape);
  const TreeNode node = binomial_tree(hosts.place, hosts.size_of(hosts.own), 0);
  PlanBuilder plan(alias_of(Collective::allreduce, shape.rank));
  plan.talk_among(hosts.here());
  if (hosts.place != 0) {
    up_and_down(plan, node, Part{});
    return std::move(plan).build();
  }
  RecursiveDoubling among_leaders(plan, hosts.own, hosts.count());
  const Piece sum = node.children.empty() ? all_input : among_leaders.place();
  reduce_up(plan, node, all_input, sum);
  plan.talk_among(hosts.across(0));
  among_leaders.run(sum);
  plan.talk_among(hosts.here());
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    plan.send(child->root, all_output);
  }
  return std::move(plan).build();
}

Cost hosts_doubling_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const bool folds = !std::has_single_bit(hosts.count());
  const double up = ceil_log2(hosts.most), down = floor_log2(hosts.most);
  const double exchanges = floor_log2(hosts.count());
  const double sent = exchanges + (folds ? 1 : 0);
  return {.steps = up + exchanges + (folds ? 2 : 0) + down,
          .bytes = sent + up,
          .scratch = 1,
          .between = sent,
          .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm allreduce_hosts_doubling = {
    .collective = Collective::allreduce,
    .name = "hosts_doubling",
    .help = "recursive doubling among one leader a host: small messages",
    .needs = {.hosts = true},
    .plan = plan_hosts_doubling,
    .cost = hosts_doubling_cost,
};

}  // namespace sluice
