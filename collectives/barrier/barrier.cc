// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/barrier/barrier.h"

#include "collectives/barrier/all_to_all.h"
#include "collectives/barrier/all_to_one.h"
#include "collectives/barrier/dissemination.h"
#include "collectives/barrier/hosts_dissemination.h"

namespace sluice {

namespace {

constexpr Algorithm row(const char* name, const char* help, Needs needs, Plan (*plan)(const Shape&),
                        Cost (*cost)(const Shape&)) {
  return {Collective::barrier, name, help, needs, plan, cost};
}

}  // namespace

std::span<const Algorithm> barrier_algorithms() {
  static constexpr Algorithm table[] = {
      row("dissemination", "tokens at doubling distance, log2 p rounds: the fastest for most", {},
          barrier_dissemination, barrier_dissemination_cost),
      row("all_to_all", "a token from each to each at once: few ranks", {}, barrier_all_to_all,
          barrier_all_to_all_cost),
      row("hosts_dissemination", "dissemination among one leader a host: many ranks on hosts",
          {.hosts = true}, barrier_hosts_dissemination, barrier_hosts_dissemination_cost),
      row("all_to_one", "tokens to rank 0 and back: fewest messages", {}, barrier_all_to_one,
          barrier_all_to_one_cost),
  };
  return table;
}

}  // namespace sluice
