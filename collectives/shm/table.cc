// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/alltoall/linear.h"
#include "collectives/shm/shm.h"

namespace sluice {
namespace {

constexpr Algorithm row(Collective collective, const char* name, const char* help,
                        bool (*direct)(Rounds&, const DirectCall&)) {
  return {collective, name, help, {}, nullptr, nullptr, Bracketing::any, direct};
}

// Uses slots even for short calls.
constexpr Algorithm by_slots(Algorithm algorithm) {
  algorithm.slots = true;
  return algorithm;
}

constexpr Algorithm fetching(Collective collective, const char* help,
                             bool (*direct)(Rounds&, const DirectCall&)) {
  return by_slots(
      {collective, "fetch", help, {.fetching = true}, nullptr, nullptr, Bracketing::any, direct});
}

constexpr Algorithm grouped(Collective collective, const char* help,
                            bool (*direct)(Rounds&, const DirectCall&)) {
  return {collective, "grouped", help, {.groups = true}, nullptr, nullptr, Bracketing::any, direct};
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

std::span<const Algorithm> direct_algorithms() {
  using enum Collective;
  static constexpr Algorithm table[] = {
      row(allreduce, "flat", "shared memory; every rank combines all: small messages",
          direct_allreduce),
      by_slots(row(allreduce, "split", "shared memory; every rank combines a share: large messages",
                   direct_allreduce_split)),
      row(reduce, "flat", "shared memory; the root combines all: small messages", direct_reduce),
      by_slots(row(reduce, "split", "shared memory; every rank combines a share: large messages",
                   direct_reduce_split)),
      row(broadcast, "flat", "shared memory; all copy what the root puts there", direct_broadcast),
      row(allgather, "flat", "shared memory; all copy everybody's block", direct_allgather),
      row(allgatherv, "flat", "shared memory; all copy everybody's block", direct_allgather),
      row(reduce_scatter, "flat", "shared memory; every rank combines its block",
          direct_reduce_scatter),
      row(alltoall, "flat", "shared memory; all copy their block of everybody's", direct_alltoall),
      by_slots(row(alltoallv, "flat", "shared memory; all copy their block of everybody's",
                   direct_alltoallv)),
      by_slots({alltoallv,
                "mixed",
                "shared memory; long blocks over links: ranks that take turns on processors",
                {},
                alltoall_linear,
                alltoall_linear_cost,
                Bracketing::any,
                direct_alltoallv_mixed}),
      row(barrier, "flat", "shared memory; all see a flag of everybody's", direct_barrier),
      fetching(allreduce, "shared memory, one copy; every rank combines a share: large messages",
               direct_allreduce_fetching),
      fetching(reduce, "shared memory, one copy; every rank combines a share: large messages",
               direct_reduce_fetching),
      fetching(broadcast, "shared memory, one copy: large messages", direct_broadcast_fetching),
      fetching(allgather, "shared memory, one copy: large messages", direct_allgather_fetching),
      fetching(allgatherv, "shared memory, one copy: large messages", direct_allgather_fetching),
      fetching(reduce_scatter, "shared memory, one copy: large messages",
               direct_reduce_scatter_fetching),
      fetching(alltoall, "shared memory, one copy of large blocks", direct_alltoallv_fetching),
      fetching(alltoallv, "shared memory, one copy of large blocks", direct_alltoallv_fetching),
      grouped(allreduce, "shared memory; groups combine theirs, then their leaders: small messages",
              direct_allreduce_grouped),
      grouped(reduce, "shared memory; groups combine theirs, then the root: small messages",
              direct_reduce_grouped),
      grouped(broadcast, "shared memory; to the leaders of groups, then to all: small messages",
              direct_broadcast_grouped),
      grouped(allgather,
              "shared memory; inside groups, between their leaders, to all: small blocks",
              direct_allgather_grouped),
      grouped(allgatherv,
              "shared memory; inside groups, between their leaders, to all: small blocks",
              direct_allgather_grouped),
      grouped(barrier, "shared memory; inside groups, then between their leaders: many ranks",
              direct_barrier_grouped),
  };
  return table;
}

}  // namespace sluice
