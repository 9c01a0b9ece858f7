// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier on two levels: tokens to one leader a host, `dissemination` among the leaders, tokens
// back.
//
// Cost, for h hosts, one of them with several ranks: 2 + ceil(log2 h) steps. Of the tokens, h
// ceil(log2 h) go between hosts.
#include "collectives/barrier/barrier.h"

#include <utility>

#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/patterns/ring.h"

namespace sluice {

namespace {

Plan plan_hosts_dissemination(const Shape& shape) {
  const Hosts hosts(shape);
  const auto others = static_cast<Rank>(hosts.here().size() - 1);
  PlanBuilder plan;
  plan.talk_among(hosts.here());
  if (hosts.place != 0) {
    plan.send_token(0);
    plan.recv_token(0);
    return std::move(plan).build();
  }
  for (Rank place = 1; place <= others; ++place) plan.recv_token(place);
  plan.talk_among(hosts.across(0));
  for (uint32_t distance = 1; distance < hosts.count(); distance *= 2) {
    if (distance > 1 || others > 0) plan.fence();
    plan.send_token(ahead(hosts.own, distance, hosts.count()));
    plan.recv_token(behind(hosts.own, distance, hosts.count()));
  }
  plan.talk_among(hosts.here());
  if (others > 0) plan.fence();
  for (Rank place = 1; place <= others; ++place) plan.send_token(place);
  return std::move(plan).build();
}

Cost hosts_dissemination_cost(const Shape& shape) {
  const Hosts hosts(shape);
  return {.steps = 2.0 + ceil_log2(hosts.count()), .at_most = !hosts.even()};
}

}  // namespace

constexpr Algorithm barrier_hosts_dissemination = {
    .collective = Collective::barrier,
    .name = "hosts_dissemination",
    .help = "dissemination among one leader a host: many ranks on hosts",
    .needs = {.hosts = true},
    .plan = plan_hosts_dissemination,
    .cost = hosts_dissemination_cost,
};

}  // namespace sluice
