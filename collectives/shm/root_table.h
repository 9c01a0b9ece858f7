// SPDX-License-Identifier: BSD-3-Clause
//
// Round 1 of gatherv and scatterv, where the root alone knows how long all blocks are: its table
// tells each other rank how long that rank's block is and where it lies, and all of them how many
// rounds follow. So ranks that disagree about a block find out, on whichever side.
#pragma once

#include <cstring>

#include "collectives/shm/cuts.h"

namespace sluice {

// Where the data of a round begins that goes behind so long a head: beside it, if both fit the
// flag's line, else in a cache line of its own, because misaligned copies are slow.
constexpr size_t begin_of_data(size_t head, size_t data) {
  constexpr size_t line = 64;
  return head + data <= ArenaLine::inlined ? head : (head + line - 1) / line * line;
}

class RootTable {
 public:
  // A block of so many bytes at most travels with round 1.
  static constexpr size_t longest_short = size_t{16} << 10;

  struct Head {
    uint64_t rounds = 0;   // that follow
    uint64_t longest = 0;  // bytes of the longest block that those carry
  };
  struct Entry {
    uint64_t bytes;
    uint64_t place;  // an address, or where in the round a short block begins
  };

  RootTable(Rounds& rounds, const ShmCall& call)
      : rounds_(rounds), call_(call), room_(room_of(rounds.size() - 1, slot_of(rounds, call))) {}

  // The most bytes of a short block, so that the root's blocks for all others may be short.
  size_t room() const { return room_; }
  bool is_short(size_t bytes) const { return bytes <= room_; }

  // On the root. blocks: call.input or call.output. Publishes the table, with short blocks behind
  // it if they are sent. place_of(rank): of a long block. False as Rounds::open.
  template <typename PlaceOf>
  bool publish(const Blocks& blocks, bool sends, const Head& head, const PlaceOf& place_of) {
    const size_t data = sends ? short_bytes(blocks) : 0;
    size_t next = begin_of_data(size(), data);
    const size_t used = next + data;
    if (!rounds_.open(1, used)) return false;
    std::byte* const to = rounds_.data(call_.root, 1, used);
    std::memcpy(to, &head, sizeof(head));
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      if (rank == call_.root) continue;
      const Bytes block = call_.block(blocks, rank);
      Entry entry{block.size, next};
      if (!is_short(block.size)) {
        entry.place = place_of(rank);
      } else if (sends) {
        move_bytes(to + next, block.data, block.size);
        next += block.size;
      }
      std::memcpy(to + entry_of(rank), &entry, sizeof(entry));
    }
    rounds_.publish(1, used);
    return true;
  }

  // On others: waits for the root's round 1. Null as Rounds::await_data.
  const std::byte* await(Head* head, Entry* mine) {
    const std::byte* const from = rounds_.await_data(call_.root, 1);
    if (!from) return nullptr;
    std::memcpy(head, from, sizeof(*head));
    std::memcpy(mine, from + entry_of(rounds_.rank()), sizeof(*mine));
    return from;
  }

 private:
  static constexpr size_t size_for(Rank others) { return sizeof(Head) + others * sizeof(Entry); }
  static constexpr size_t room_of(Rank others, size_t slot) {
    if (others <= 1) return slot - begin_of_data(size_for(1), slot);
    return std::min((slot - begin_of_data(size_for(others), slot)) / others, longest_short);
  }
  static size_t slot_of(const Rounds& rounds, const ShmCall& call) {
    return rounds.size() <= 2 && !call.in_turns ? ArenaShortSlot::capacity : ArenaSlot::capacity;
  }
  // Bytes of the table.
  size_t size() const { return size_for(rounds_.size() - 1); }
  size_t short_bytes(const Blocks& blocks) const {
    size_t bytes = 0;
    for (Rank rank = 0; rank < rounds_.size(); ++rank) {
      const size_t block = call_.block(blocks, rank).size;
      if (rank != call_.root && is_short(block)) bytes += block;
    }
    return bytes;
  }
  size_t entry_of(Rank rank) const {
    return sizeof(Head) + (rank < call_.root ? rank : rank - 1) * sizeof(Entry);
  }

  Rounds& rounds_;
  const ShmCall& call_;
  const size_t room_;
};

}  // namespace sluice
