// SPDX-License-Identifier: BSD-3-Clause
//
// Round 1 of exchanges whose blocks may be long. Each rank publishes a table: for each other rank
// the size and address of the block for it, and the size expected from it. Short blocks follow the
// table.
#pragma once

#include "collectives/shm/cuts.h"

namespace sluice {

// A table begins with a number that the algorithm chooses. All ranks learn the largest.
class BlockTable {
 public:
  static constexpr size_t longest_short = size_t{16} << 10;

  BlockTable(Rounds& rounds, const ShmCall& call) : rounds_(rounds), call_(call) {}

  // The most bytes of a short block. All blocks of a rank may be short.
  size_t room() const { return room_; }
  bool is_short(size_t bytes) const { return bytes <= room_; }

  // Publishes this rank's table and short blocks. Blocks until their place is free; false as
  // Rounds::open.
  bool put(uint64_t number) {
    size_t used = table_;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const size_t bytes = call_.block(call_.input, rank).size;
      if (rank != me_ && is_short(bytes)) used += bytes;
    }
    if (!rounds_.open(1, used)) return false;
    std::byte* const to = rounds_.data(me_, 1, used);
    std::memcpy(to, &number, sizeof(number));
    largest_ = number;
    size_t offset = table_;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (rank == me_) continue;
      const Bytes block = call_.block(call_.input, rank);
      const bool is_here = is_short(block.size);
      const Entry entry{block.size, is_here ? offset : reinterpret_cast<uintptr_t>(block.data),
                        call_.block(call_.output, rank).size};
      std::memcpy(to + entry_at(rank, me_), &entry, sizeof(entry));
      if (is_here) move_bytes(to + offset, block.data, block.size);
      if (is_here) offset += block.size;
    }
    rounds_.publish(1, used);
    return true;
  }

  // Receives another rank's block for this one: copies a short block, returns the address of a long
  // one in that rank's memory. Waits for that rank only. False if the wait failed or the sizes
  // differ.
  bool get(Rank rank, uint64_t* address) {
    Entry entry;
    const std::byte* const from = read(rank, &entry);
    if (!from) return false;
    const Bytes to = call_.block(call_.output, rank);
    if (is_short(to.size)) {
      move_bytes(to.data, from + entry.place, to.size);
    } else {
      *address = entry.place;
    }
    return true;
  }
  // Whether those that have told, and this rank, agree. Waits for nobody.
  bool is_sound() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      Entry entry;
      if (rank != me_ && rounds_.is_there(rank, 1) && !read(rank, &entry)) return false;
    }
    return true;
  }
  // The largest number in the tables put and read so far.
  uint64_t largest() const { return largest_; }

 private:
  struct Entry {
    uint64_t bytes;
    uint64_t place;  // address; of a short block, its offset in the round
    uint64_t expected;
  };
  // Waits for that rank's table. Null if the wait failed or the ranks disagree about a size.
  const std::byte* read(Rank rank, Entry* entry) {
    const std::byte* const from = rounds_.await_data(rank, 1);
    if (!from) return nullptr;
    uint64_t number;
    std::memcpy(&number, from, sizeof(number));
    largest_ = std::max(largest_, number);
    std::memcpy(entry, from + entry_at(me_, rank), sizeof(*entry));
    const size_t own = call_.block(call_.input, rank).size;
    const size_t expected = call_.block(call_.output, rank).size;
    const bool good =
        entry->bytes == expected
            ? entry->expected == own || rounds_.disagree_about_own(rank, entry->expected, own)
            : rounds_.disagree(rank, entry->bytes, expected);
    return good ? from : nullptr;
  }
  // Offset of a rank's entry in another rank's table.
  static size_t entry_at(Rank rank, Rank in) {
    return sizeof(uint64_t) + (rank < in ? rank : rank - 1) * sizeof(Entry);
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const Rank me_ = rounds_.rank(), ranks_ = rounds_.size();
  const size_t table_ = sizeof(uint64_t) + (ranks_ - 1) * sizeof(Entry);
  const size_t room_ =
      std::min((ArenaSlot::capacity - table_) / std::max(ranks_ - 1, Rank{1}), longest_short);
  uint64_t largest_ = 0;
};

}  // namespace sluice
