// SPDX-License-Identifier: BSD-3-Clause
//
// Shared-memory algorithms: collectives of ranks that map one arena
// (transports/shm/arena.h), as plain loops over its rounds. A call's data passes from the callers'
// memory through the arena, a piece each round. A rank may be some rounds ahead of the slowest
// (ArenaRank::depth), so it copies the next piece in while the last one is reduced. Plans can serve
// inside a host as well, over links in shared memory, but to run a graph takes longer: an 8-byte
// allreduce of two ranks takes 0.6 us by a plan, and 0.2 us here.
//
// Each blocks. It returns false if the wait was given up, a CMA copy failed or ranks disagree; its
// rounds are then lost, and the team is broken. The number of rounds follows from values that are
// equal on all ranks (alltoallv exchanges it first).
//
// Flags that travel with the data, and slots in place of closing barriers, follow Graham and
// Shipman, "MPI Support for Multi-core Architectures: Optimized Shared Memory Collectives" (2008),
// and Parsons and Pai, "Accelerating MPI Collective Communications through Hierarchical Algorithms
// Without Sacrificing Inter-Node Communication Flexibility" (2014).
#pragma once

#include <bit>
#include <functional>
#include <span>

#include "collectives/algorithm.h"
#include "src/base/copy.h"
#include "src/reduce/kernel.h"
#include "transports/shm/arena.h"

namespace sluice {

class Groups;

// For a power of two callers avoid a division, which would take a large part of a short call's
// time. (std::has_single_bit calls a function when compiled for any processor.)
inline bool is_power_of_two(size_t n) { return (n & (n - 1)) == 0; }

// The part of a call that goes over links: the long blocks from this rank to others and back. False
// if it failed; the team then knows the error.
class OverLinks {
 public:
  virtual ~OverLinks() = default;
  // by: the algorithm whose plan moves them. shorter: a short block's bytes at most. Nothing has
  // been sent when this fails.
  virtual bool start(const Algorithm& by, size_t shorter) = 0;
  // Moves them, and waits for no other ranks. is_sound: asked if that takes long; false if ranks
  // disagree.
  virtual bool finish(const std::function<bool()>& is_sound) = 0;
};

struct ShmCall {
  // Scratch holds two operands, each with a page of padding, so that it can have the page offset of
  // a remote operand.
  static constexpr size_t scratch_piece = size_t{256} << 10,
                          scratch_half = scratch_piece + copy_page;

  Rank root;
  size_t element;  // bytes
  const Reduction& reduction;
  const Blocks &input, &output;
  const Groups* groups;          // for algorithms that need them (groups.h)
  bool in_turns;                 // ranks are oversubscribed
  std::span<std::byte> scratch;  // 2 * scratch_half bytes, for CMA algorithms
  OverLinks& links;

  Bytes block(const Blocks& blocks, Rank rank) const {
    if (blocks.counts.empty()) {
      return {blocks.base + rank * blocks.count * element, blocks.count * element};
    }
    return {blocks.base + blocks.offsets[rank] * element, blocks.counts[rank] * element};
  }
  Bytes all(const Blocks& blocks) const { return {blocks.base, blocks.count * element}; }
  // The number of elements in so many bytes.
  size_t elements(size_t bytes) const {
    return is_power_of_two(element) ? bytes >> std::countr_zero(element) : bytes / element;
  }
  // out = left (op) right
  void combine(const std::byte* left, const std::byte* right, std::byte* out, size_t bytes) const {
    reduction.kernel(left, right, out, elements(bytes), reduction.context);
  }
};

// The algorithms, in the files where they run.
extern const Algorithm shm_allreduce;
extern const Algorithm shm_allreduce_split;
extern const Algorithm shm_reduce;
extern const Algorithm shm_reduce_split;
extern const Algorithm shm_broadcast;
extern const Algorithm shm_allgather;
extern const Algorithm shm_allgatherv;
extern const Algorithm shm_reduce_scatter;
extern const Algorithm shm_scan;
extern const Algorithm shm_scan_prefixes;
extern const Algorithm shm_exscan;
extern const Algorithm shm_exscan_prefixes;
extern const Algorithm shm_gather;
extern const Algorithm shm_gatherv;
extern const Algorithm shm_scatter;
extern const Algorithm shm_scatterv;
extern const Algorithm shm_alltoall;
extern const Algorithm shm_alltoallv;
extern const Algorithm shm_alltoallv_mixed;
extern const Algorithm shm_barrier;
// One copy (CMA): ranks publish the addresses of their data, then get or put it. A rank leaves when
// no other rank needs its memory any more. If the kernel can't copy some rank's memory, the call
// uses the slots.
extern const Algorithm shm_allreduce_cma;
extern const Algorithm shm_reduce_cma;
extern const Algorithm shm_broadcast_cma;
extern const Algorithm shm_allgather_cma;
extern const Algorithm shm_allgatherv_cma;
extern const Algorithm shm_reduce_scatter_cma;
extern const Algorithm shm_gather_cma;
extern const Algorithm shm_gatherv_cma;
extern const Algorithm shm_scatter_cma;
extern const Algorithm shm_scatterv_cma;
extern const Algorithm shm_alltoall_cma;
extern const Algorithm shm_alltoallv_cma;
// In groups (groups.h), for short data.
extern const Algorithm shm_allreduce_grouped;
extern const Algorithm shm_reduce_grouped;
extern const Algorithm shm_broadcast_grouped;
extern const Algorithm shm_allgather_grouped;
extern const Algorithm shm_allgatherv_grouped;
extern const Algorithm shm_barrier_grouped;

// Whether a call of this shape (Call in src/engine/call.h) may use slots. Equal on all ranks.
bool needs_slots(const Algorithm& algorithm, size_t bytes, bool ragged, Rank ranks);

// A slot is divided among at most so many ranks, with 64 bytes for each.
inline constexpr Rank most_shm_ranks = 512;
// Whether a slot has room for an element for every rank.
inline bool fits_slot(size_t element, Rank ranks) {
  return ranks <= most_shm_ranks && element <= ArenaSlot::capacity / ranks;
}

}  // namespace sluice
