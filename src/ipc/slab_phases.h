// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank does in a call that goes from device to device by slabs: device memory of each rank,
// which all others can read. Nobody writes to another rank's slab. The call has phases; a rank does
// its part of one, waits until that is done, and meets the others. So in one phase no rank writes
// what another one reads or writes.
//
// Data goes through a slab in pieces, which take turns in two or three buffers. With n pieces,
// phase p does for piece p, p-1 and p-2 at once:
//
//   collective        buffers  piece p                piece p-1              piece p-2
//   broadcast         2        root: fill its slab    copy from the root
//   allgather(v)      2        fill own slab          copy from all
//   alltoall(v)       2        fill, a slot a rank    copy own slot of all
//   reduce_scatter    2        fill, a slot a rank    reduce own slot of all
//   allreduce         3        fill own slab          reduce own slice       copy all slices
//   reduce            3        fill own slab          reduce own slice       root: copy all slices
//
// (Allreduce is Rabenseifner's reduce-scatter and allgather, by reads of other ranks' memory. The
// slots are Open MPI's and NCCL's: memory of the program is not mapped by others.)
//
// Pure functions of what is equal on all ranks, but for the numbers of this one. Operands are in
// the order of ranks and bracketed from the left, so no result depends on who reduces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/call.h"

namespace sluice {

struct SlabWork {
  enum class Kind : uint8_t { copy, reduce };
  enum class Memory : uint8_t { input, output, slab };
  struct Spot {
    Memory memory;
    Rank rank;  // whose slab
    size_t at;  // bytes from its beginning
  };
  Kind kind;
  Spot from;  // reduce: the operands lie there in every rank's slab
  Spot to;
  size_t bytes;
};

class SlabPhases {
 public:
  // Bytes of a piece, of such a call; 0: slabs are too small. slab: bytes of each.
  static size_t piece(const Call& call, Rank ranks, size_t slab);

  // call: with its views, of which only the sizes matter here. It must outlive this. There must be
  // pieces. longest: bytes of the longest block of an alltoallv that any rank sends.
  SlabPhases(const Call& call, Rank rank, Rank ranks, size_t slab, size_t longest = 0);

  // Equal on all ranks.
  size_t count() const { return pieces_ + (has_slices_ ? 2 : 1); }
  // Appends the work of one phase on this rank, in any order. Works of no bytes are left out.
  void list(size_t phase, std::vector<SlabWork>* works) const;

 private:
  using Spot = SlabWork::Spot;
  struct Part {
    size_t at, bytes;  // from the beginning of what is cut
  };

  Part part(size_t of, size_t index) const;
  Part slice(size_t of, Rank index) const;
  size_t in_bytes(const View& view, uint32_t block) const;
  size_t offset_of(const View& view, uint32_t block) const;
  size_t longest(size_t of_alltoallv) const;
  Spot slot(Rank rank, size_t index, Rank slot = 0) const;
  void keep_own(std::vector<SlabWork>* works) const;
  void fill(size_t index, std::vector<SlabWork>* works) const;
  void fill_from(const View& view, uint32_t block, size_t index, Rank to,
                 std::vector<SlabWork>* works) const;
  void fetch(size_t index, std::vector<SlabWork>* works) const;
  void fetch_block(Rank from, uint32_t block, size_t index, Rank slot_there,
                   std::vector<SlabWork>* works) const;
  void reduce_slice(size_t index, std::vector<SlabWork>* works) const;
  void fetch_slices(size_t index, std::vector<SlabWork>* works) const;

  const Call& call_;
  const Rank rank_, ranks_;
  const bool has_slices_;
  const size_t buffers_, slots_, piece_, pieces_;
};

}  // namespace sluice
