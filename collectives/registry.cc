// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/allgather/allgather.h"
#include "collectives/allreduce/allreduce.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/barrier/barrier.h"
#include "collectives/broadcast/broadcast.h"
#include "collectives/gather/gather.h"
#include "collectives/reduce/reduce.h"
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "collectives/scan/scan.h"
#include "collectives/shm/shm.h"

namespace sluice {

namespace {

constexpr const Algorithm* listed[] = {
    &allreduce_ring,
    &allreduce_ring_whole,
    &allreduce_bcube,
    &allreduce_recursive_doubling,
    &allreduce_rabenseifner,
    &allreduce_tree,
    &allreduce_double_tree,
    &allreduce_binomial,
    &allreduce_direct,
    &allreduce_hosts_doubling,
    &allreduce_hosts_bcube,
    &allreduce_hosts_ring,
    &allreduce_hosts_direct,
    &reduce_ring,
    &reduce_chain,
    &reduce_binomial,
    &reduce_direct,
    &reduce_hosts_binomial,
    &reduce_hosts_chain,
    &broadcast_one_to_all,
    &broadcast_binomial,
    &broadcast_chain,
    &broadcast_scatter_allgather,
    &broadcast_hosts_binomial,
    &broadcast_hosts_chain,
    &allgather_ring,
    &allgather_bruck,
    &allgather_recursive_doubling,
    &allgather_hosts_bruck,
    &allgather_hosts_ring,
    &allgather_hosts_direct,
    &allgatherv_ring,
    &allgatherv_bruck,
    &allgatherv_recursive_doubling,
    &allgatherv_hosts_bruck,
    &allgatherv_hosts_ring,
    &allgatherv_hosts_direct,
    &reduce_scatter_ring,
    &reduce_scatter_recursive_halving,
    &reduce_scatter_direct,
    &reduce_scatter_hosts_ring,
    &reduce_scatter_hosts_direct,
    &scan_doubling,
    &scan_chain,
    &scan_hosts_doubling,
    &exscan_doubling,
    &exscan_chain,
    &exscan_hosts_doubling,
    &gather_linear,
    &gather_binomial,
    &gather_hosts_linear,
    &gatherv_linear,
    &scatter_linear,
    &scatter_binomial,
    &scatter_hosts_linear,
    &scatterv_linear,
    &alltoall_linear,
    &alltoall_pairwise,
    &alltoall_bruck,
    &alltoall_hosts,
    &alltoallv_linear,
    &alltoallv_pairwise,
    &alltoallv_hosts,
    &barrier_dissemination,
    &barrier_all_to_all,
    &barrier_hosts_dissemination,
    &barrier_all_to_one,
    &shm_allreduce,
    &shm_allreduce_split,
    &shm_reduce,
    &shm_reduce_split,
    &shm_broadcast,
    &shm_allgather,
    &shm_allgatherv,
    &shm_reduce_scatter,
    &shm_scan,
    &shm_scan_prefixes,
    &shm_exscan,
    &shm_exscan_prefixes,
    &shm_gather,
    &shm_gather_cma,
    &shm_gatherv,
    &shm_gatherv_cma,
    &shm_scatter,
    &shm_scatter_cma,
    &shm_scatterv,
    &shm_scatterv_cma,
    &shm_alltoall,
    &shm_alltoallv,
    &shm_alltoallv_mixed,
    &shm_barrier,
    &shm_allreduce_cma,
    &shm_reduce_cma,
    &shm_broadcast_cma,
    &shm_allgather_cma,
    &shm_allgatherv_cma,
    &shm_reduce_scatter_cma,
    &shm_alltoall_cma,
    &shm_alltoallv_cma,
    &shm_allreduce_grouped,
    &shm_reduce_grouped,
    &shm_broadcast_grouped,
    &shm_allgather_grouped,
    &shm_allgatherv_grouped,
    &shm_barrier_grouped,
};

// `algorithms(collective)` needs each collective's in one run.
std::vector<Algorithm> by_collective() {
  std::vector<Algorithm> table;
  for (const Algorithm* const algorithm : listed) table.push_back(*algorithm);
  std::stable_sort(table.begin(), table.end(), [](const Algorithm& a, const Algorithm& b) {
    return a.collective < b.collective;
  });
  return table;
}

}  // namespace

std::span<const Algorithm> algorithms() {
  // Made at the first call and never destroyed: nothing runs at load or at exit.
  static const auto& table = *new std::vector<Algorithm>(by_collective());
  return table;
}

}  // namespace sluice
