// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of an alltoallv that tell short blocks from long ones.
#pragma once

#include <span>
#include <vector>

#include "src/engine/execution.h"

namespace sluice {

// An alltoallv without its short blocks, which go another way. The sender and the receiver of a
// block both know its length, so both leave out the same blocks.
class LongBlocks {
 public:
  // Keeps the blocks between this rank and others that are longer than `most_short` bytes. False if
  // there is no memory.
  bool leave(const Call& call, Rank rank, Rank ranks, size_t most_short);

  // The call with all other blocks empty; valid until the next leave().
  const Call& call() const { return call_; }
  bool any() const { return any_; }

 private:
  void leave(View* view, std::span<size_t> counts, Rank rank, size_t most_short);

  Call call_;
  std::vector<size_t> counts_;  // elements to each rank, then from each rank
  bool any_ = false;
};

// An alltoallv as two exchanges. Only the sender and the receiver of a block know its length. So
// that other ranks can forward short blocks, each goes with its length in a cell, whose size all
// ranks know; cells go by the plan of alltoall's `hosts`. A block too long for a cell goes straight
// to its receiver; both ends can tell.
//
// The cells go first. They contain all lengths, so if two ranks disagree about one, neither waits
// for a block that never comes. They also say how many short blocks each rank has, so all ranks
// know the same total. Programs mostly repeat their exchanges, and the exchange of cells takes
// about as long as that of the blocks. So if cells carried little, the next calls leave them out:
// 31 calls at first, and about twice as many each time that it was little again, up to 1023.
class PaddedAlltoallv {
  struct Header {
    uint64_t bytes;         // of the block
    uint64_t short_blocks;  // blocks that the sender has in cells; not empty ones, not its own
  };

 public:
  // Bytes of a block that fit a cell of `cell` bytes.
  static constexpr size_t room(size_t cell) { return cell - sizeof(Header); }

  // Whether this call leaves the cells out, and all blocks go straight. To be called once for each
  // call. Equal on all ranks.
  bool are_left_out() {
    if (left_out_ == 0) return false;
    --left_out_;
    return true;
  }

  // Copies the short blocks of `call` into cells, and this rank's own block to the output. False if
  // there is no memory. What `call` points to must stay valid until both exchanges are done.
  bool fill(const Call& call, Rank rank, Rank ranks, size_t cell);

  // The exchange of cells, all of one size.
  const Call& cells() const { return cells_; }
  // The exchange of the blocks that are too long for a cell.
  const LongBlocks& rest() const { return rest_; }

  // To be called after the exchange of cells: copies the short blocks to the output. An error if a
  // rank's block has another length than this rank expects; *rank is then that rank.
  Status unpack(Rank* rank);

  // To be called between communicators: frees the memory, and forgets earlier exchanges.
  void reset() { *this = {}; }

 private:
  static constexpr uint32_t first_left_out = 31, most_left_out = 1023;

  size_t bytes_of(const View& view, Rank rank) const { return view.counts[rank] * call_.element; }
  std::byte* place_of(const View& view, Rank rank) const {
    return view.base + view.offsets[rank] * call_.element;
  }
  bool is_short(size_t bytes) const { return bytes <= room(cell_); }
  void count();
  void pack(Rank rank) const;
  void judge(uint64_t short_blocks);

  Call call_, cells_;
  LongBlocks rest_;
  Rank rank_ = 0, ranks_ = 0;
  size_t cell_ = 0;
  Scratch memory_;         // cells to send, then cells to receive
  Header own_{};           // this rank's, without the length
  uint32_t left_out_ = 0;  // calls that still leave cells out
  uint32_t next_left_out_ = first_left_out;
};

}  // namespace sluice
