// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/direct/block_table.h"

namespace sluice {

// The number in a rank's table: whether any of its blocks is not short.
bool direct_alltoallv_mixed(Rounds& rounds, const DirectCall& call) {
  const Rank me = rounds.rank(), ranks = rounds.size();
  BlockTable table(rounds, call);
  bool has_long = false;
  for (Rank rank = 0; rank < ranks; ++rank) {
    has_long |= rank != me && !table.is_short(call.block(call.input, rank).size);
  }
  if (!table.put(has_long)) return false;
  for (Rank step = 1; step < ranks; ++step) {
    uint64_t unused;
    if (!table.get((me + step) % ranks, &unused)) return false;
  }
  rounds.take(1);
  rounds.end(1);
  *call.is_left_to_plan = table.largest() > 0;
  if (!*call.is_left_to_plan) move_own_block(rounds, call);
  return true;
}

}  // namespace sluice
