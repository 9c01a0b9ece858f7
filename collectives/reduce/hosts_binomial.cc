// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/reduce/hosts_binomial.h"

#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/reduce/phases.h"

namespace sluice {

Plan reduce_hosts_binomial(const Shape& shape) {
  PlanBuilder plan(alias_of(Collective::reduce, shape.rank));
  reduce_to_root(plan, hosts_tree(shape));
  return std::move(plan).build();
}

Cost reduce_hosts_binomial_cost(const Shape& shape) {
  const Hosts hosts(shape);
  return {.steps = static_cast<double>(ceil_log2(hosts.most) + ceil_log2(hosts.count())),
          .bytes = 1,
          .scratch = 1,
          .between = 1,
          .at_most = !hosts.even()};
}

}  // namespace sluice
