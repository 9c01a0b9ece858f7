// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/alltoall.h"
#include "collectives/shm/block_table.h"

namespace sluice {
namespace {

// Short blocks go through the slots, long ones over links in shared memory, by a plan. For 3 to
// 16 oversubscribed ranks: a long block passes through a ring that fits the cache, and a rank waits
// only for the ranks whose blocks it receives. (2 cores, blocks of 64 KB: 4 ranks take 28 us, by
// CMA 58; 8 ranks 183 us, by CMA 222.) Long blocks start before the size table is complete, so late
// ranks delay nobody. The table also says what each rank expects: ranks that disagree about a
// block, and so wait for bytes that never come, find out by it.
bool run_alltoallv_mixed(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  BlockTable table(rounds, call);
  const auto is_sound = [&table] { return table.is_sound(); };
  if (!call.links.start(alltoallv_linear, table.room()) || !table.put(0) ||
      !call.links.finish(is_sound)) {
    return false;
  }
  move_own_block(rounds, call);
  for (Rank step = 1; step < ranks; ++step) {
    uint64_t unused;
    if (!table.get((me + step) % ranks, &unused)) return false;
  }
  rounds.mark_taken(1);
  rounds.end(1);
  return true;
}

}  // namespace

constexpr Algorithm shm_alltoallv_mixed = {
    .collective = Collective::alltoallv,
    .name = "mixed",
    .help = "shared memory; long blocks over links: ranks that take turns on processors",
    .shm = run_alltoallv_mixed,
    .slots = true,
};

}  // namespace sluice
