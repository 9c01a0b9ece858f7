// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/alltoall.h"
#include "collectives/shm/block_table.h"

namespace sluice {
namespace {

// Short blocks through the slots, others over links, where nobody waits for ranks that it has no
// piece for or from. For few ranks that take turns.
// Who comes late finds what others had for it, and they go on meanwhile: what is long does not wait
// for the table. That says what each rank expects, too: where ranks disagree about a block, and
// wait for what never comes, they find out.
bool run_alltoallv_mixed(Rounds& rounds, const ShmCall& call) {
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

}  // namespace

constexpr Algorithm shm_alltoallv_mixed = {
    .collective = Collective::alltoallv,
    .name = "mixed",
    .help = "shared memory; long blocks over links: ranks that take turns on processors",
    .shm = run_alltoallv_mixed,
    .beside = &alltoallv_linear,
    .slots = true,
};

}  // namespace sluice
