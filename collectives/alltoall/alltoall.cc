// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/alltoall.h"

#include "collectives/alltoall/bruck.h"
#include "collectives/alltoall/hosts.h"
#include "collectives/alltoall/linear.h"
#include "collectives/alltoall/pairwise.h"

namespace sluice {

namespace {

constexpr Algorithm row(Collective collective, const char* name, const char* help, Needs needs,
                        Plan (*plan)(const Shape&), Cost (*cost)(const Shape&)) {
  return {collective, name, help, needs, plan, cost};
}

constexpr Algorithm in_cells(uint32_t bytes, const Algorithm* beside, Algorithm algorithm) {
  algorithm.cell = bytes;
  algorithm.beside = beside;
  return algorithm;
}

}  // namespace

std::span<const Algorithm> alltoall_algorithms() {
  static constexpr Algorithm straight =
      row(Collective::alltoallv, "linear", "all messages at once: few ranks or short blocks", {},
          alltoall_linear, alltoall_linear_cost);
  static constexpr Algorithm table[] = {
      row(Collective::alltoall, "linear", "all messages at once: few ranks or short blocks", {},
          alltoall_linear, alltoall_linear_cost),
      row(Collective::alltoall, "pairwise",
          "p-1 exchanges one after another: long blocks, many ranks", {}, alltoall_pairwise,
          alltoall_pairwise_cost),
      row(Collective::alltoall, "bruck", "log2 p messages of many blocks: short blocks, many ranks",
          {.uniform = true}, alltoall_bruck, alltoall_bruck_cost),
      row(Collective::alltoall, "hosts", "one message from each host to each: short blocks",
          {.uniform = true, .hosts = true}, alltoall_hosts, alltoall_hosts_cost),
      straight,
      row(Collective::alltoallv, "pairwise",
          "p-1 exchanges one after another: long blocks, many ranks", {}, alltoall_pairwise,
          alltoall_pairwise_cost),
      in_cells(512, &straight,
               row(Collective::alltoallv, "hosts",
                   "one message from each host to each, of cells for short blocks; others straight",
                   {.hosts = true}, alltoall_hosts, alltoall_hosts_cost)),
  };
  return table;
}

}  // namespace sluice
