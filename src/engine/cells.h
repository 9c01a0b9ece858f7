// SPDX-License-Identifier: BSD-3-Clause
//
// An alltoallv as two exchanges whose messages can be forwarded or need not be. Only who sends and
// who receives a block know how long it is. So that others may carry it, what is short goes in a
// cell, of a size that all ranks know, with its length before it; a block that no cell holds goes
// straight, as both its ends can tell.
//
// The cells come first: they say all lengths, and where two ranks disagree about one, nobody waits
// for what never comes. They also say how much each rank has in cells: all ranks learn the same of
// the whole exchange. Programs mostly exchange again what they exchanged before, and cells take
// about as long as what goes straight: where they carried little, they are left out for a number of
// calls, and for twice as many each time that it was little again.
#pragma once

#include "src/engine/execution.h"
#include "src/engine/long_blocks.h"

namespace sluice {

class Cells {
  struct Header {
    uint64_t bytes;         // of the block
    uint64_t short_blocks;  // of its rank's that are not empty, its own apart, those in cells
  };

 public:
  // Bytes of a block that a cell of so many holds.
  static constexpr size_t room(size_t cell) { return cell - sizeof(Header); }

  // Asked once for each call: whether all goes straight. Equal on all ranks.
  bool are_left_out() {
    if (left_out_ == 0) return false;
    --left_out_;
    return true;
  }

  // Puts the short blocks of `call` into cells, and this rank's own in its place. False if there is
  // no memory. What `call` points to stays valid until take().
  bool fill(const Call& call, Rank rank, Rank ranks, size_t cell);

  // The exchange of cells: blocks of one size.
  const Call& cells() const { return cells_; }
  // And of the rest.
  const LongBlocks& rest() const { return rest_; }

  // After the exchange of cells: takes the short blocks to their places. An error where a rank's
  // block is not as long as this one expects; `rank` is that rank.
  Status take(Rank* rank);

  // Between communicators: gives the memory back, and forgets what was exchanged.
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
  Scratch memory_;         // cells to send, and to receive
  Header own_{};           // but for the length
  uint32_t left_out_ = 0;  // for so many calls
  uint32_t next_left_out_ = first_left_out;
};

}  // namespace sluice
