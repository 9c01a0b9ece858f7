// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/block_table.h"

namespace sluice {

// Who comes late finds what others had for it, and they go on meanwhile: what is long does not wait
// for the table. That says what each rank expects, too: where ranks disagree about a block, and
// wait for what never comes, they find out.
bool shm_alltoallv_mixed(Rounds& rounds, const ShmCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  BlockTable table(rounds, call);
  const auto is_sound = [&table] { return table.is_sound(); };
  if (!call.links.start(table.room()) || !table.put(0) || !call.links.finish(is_sound)) {
    return false;
  }
  move_own_block(rounds, call);
  for (Rank step = 1; step < ranks; ++step) {
    uint64_t unused;
    if (!table.get((me + step) % ranks, &unused)) return false;
  }
  rounds.take(1);
  rounds.end(1);
  return true;
}

}  // namespace sluice
