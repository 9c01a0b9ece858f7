// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/allgather/allgather.h"
#include "collectives/allreduce/allreduce.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/barrier/barrier.h"
#include "collectives/broadcast/broadcast.h"
#include "collectives/reduce/reduce.h"
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "collectives/shm/shm.h"

namespace sluice {

namespace {

std::vector<Algorithm> joined() {
  std::vector<Algorithm> table;
  for (const auto folder : {allreduce_algorithms(), reduce_algorithms(), broadcast_algorithms(),
                            allgather_algorithms(), reduce_scatter_algorithms(),
                            alltoall_algorithms(), barrier_algorithms(), shm_algorithms()}) {
    table.insert(table.end(), folder.begin(), folder.end());
  }
  // A folder may serve two collectives, but `algorithms(collective)` needs each in one run.
  std::stable_sort(table.begin(), table.end(), [](const Algorithm& a, const Algorithm& b) {
    return a.collective < b.collective;
  });
  return table;
}

}  // namespace

std::span<const Algorithm> algorithms() {
  // Made at the first call and never destroyed: nothing runs at load or at exit.
  static const auto& table = *new std::vector<Algorithm>(joined());
  return table;
}

}  // namespace sluice
