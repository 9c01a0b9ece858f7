// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/linear.h"
#include "collectives/shm/shm.h"

namespace sluice {
namespace {

constexpr Algorithm row(Collective collective, const char* name, const char* help,
                        bool (*shm)(Rounds&, const ShmCall&)) {
  return {collective, name, help, {}, nullptr, nullptr, Bracketing::any, shm};
}

// Uses slots even for short calls.
constexpr Algorithm by_slots(Algorithm algorithm) {
  algorithm.slots = true;
  return algorithm;
}

constexpr Algorithm by_cma(Collective collective, const char* help,
                           bool (*shm)(Rounds&, const ShmCall&)) {
  return by_slots(
      {collective, "fetch", help, {.cma = true}, nullptr, nullptr, Bracketing::any, shm});
}

constexpr Algorithm grouped(Collective collective, const char* help,
                            bool (*shm)(Rounds&, const ShmCall&)) {
  return {collective, "grouped", help, {.groups = true}, nullptr, nullptr, Bracketing::any, shm};
}

}  // namespace

bool needs_slots(const Algorithm& algorithm, size_t bytes, bool ragged, Rank ranks) {
  if (algorithm.slots) return true;
  size_t most = bytes;  // bytes of a rank in a round
  switch (algorithm.collective) {
    case Collective::allgather:
    case Collective::allgatherv:
      if (algorithm.needs.groups) {
        most = ragged ? bytes * ranks : bytes;  // room for the longest block of each
      } else if (!ragged) {
        most = bytes / ranks;
      }
      break;
    case Collective::alltoall:
    case Collective::reduce_scatter:
      most = (ragged ? bytes : bytes / ranks) * (ranks - 1);  // ragged: room for the longest block
      break;
    default:
      break;
  }
  return most > ArenaLine::inlined;
}

std::span<const Algorithm> shm_algorithms() {
  using enum Collective;
  static constexpr Algorithm table[] = {
      row(allreduce, "flat", "shared memory; every rank combines all: small messages",
          shm_allreduce),
      by_slots(row(allreduce, "split", "shared memory; every rank combines a share: large messages",
                   shm_allreduce_split)),
      row(reduce, "flat", "shared memory; the root combines all: small messages", shm_reduce),
      by_slots(row(reduce, "split", "shared memory; every rank combines a share: large messages",
                   shm_reduce_split)),
      row(broadcast, "flat", "shared memory; all copy what the root puts there", shm_broadcast),
      row(allgather, "flat", "shared memory; all copy everybody's block", shm_allgather),
      row(allgatherv, "flat", "shared memory; all copy everybody's block", shm_allgather),
      row(reduce_scatter, "flat", "shared memory; every rank combines its block",
          shm_reduce_scatter),
      row(alltoall, "flat", "shared memory; all copy their block of everybody's", shm_alltoall),
      by_slots(row(alltoallv, "flat", "shared memory; all copy their block of everybody's",
                   shm_alltoallv)),
      by_slots({alltoallv,
                "mixed",
                "shared memory; long blocks over links: ranks that take turns on processors",
                {},
                alltoall_linear,
                alltoall_linear_cost,
                Bracketing::any,
                shm_alltoallv_mixed}),
      row(barrier, "flat", "shared memory; all see a flag of everybody's", shm_barrier),
      by_cma(allreduce, "shared memory, one copy; every rank combines a share: large messages",
             shm_allreduce_cma),
      by_cma(reduce, "shared memory, one copy; every rank combines a share: large messages",
             shm_reduce_cma),
      by_cma(broadcast, "shared memory, one copy: large messages", shm_broadcast_cma),
      by_cma(allgather, "shared memory, one copy: large messages", shm_allgather_cma),
      by_cma(allgatherv, "shared memory, one copy: large messages", shm_allgather_cma),
      by_cma(reduce_scatter, "shared memory, one copy: large messages", shm_reduce_scatter_cma),
      by_cma(alltoall, "shared memory, one copy of large blocks", shm_alltoallv_cma),
      by_cma(alltoallv, "shared memory, one copy of large blocks", shm_alltoallv_cma),
      grouped(allreduce, "shared memory; groups combine theirs, then their leaders: small messages",
              shm_allreduce_grouped),
      grouped(reduce, "shared memory; groups combine theirs, then the root: small messages",
              shm_reduce_grouped),
      grouped(broadcast, "shared memory; to the leaders of groups, then to all: small messages",
              shm_broadcast_grouped),
      grouped(allgather,
              "shared memory; inside groups, between their leaders, to all: small blocks",
              shm_allgather_grouped),
      grouped(allgatherv,
              "shared memory; inside groups, between their leaders, to all: small blocks",
              shm_allgather_grouped),
      grouped(barrier, "shared memory; inside groups, then between their leaders: many ranks",
              shm_barrier_grouped),
  };
  return table;
}

}  // namespace sluice
