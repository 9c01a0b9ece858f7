// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in ordinary memory, for ranks that are threads of one process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/shm/arena.h"

namespace sluice::testing {

class ArenaHub {
 public:
  // Of one rank; the hub outlives it.
  std::unique_ptr<ArenaSource> source();
  // From now on a rank is taken for dead.
  void kill(uint32_t rank);
  // Ranks can't read each other's memory.
  void forbid_fetching() { fetches_ = false; }
  // One rank can't read or write another's.
  void part(uint32_t mover, uint32_t owner) { parted_ = {mover, owner, false}; }
  // The n-th move from now on, counted from 1, is done in part, and fails with this error.
  void fail_move(uint32_t n, int error) {
    failing_ = moves_ + n;
    error_ = error;
  }
  // A rank reads other memory, or writes it.
  struct Move {
    uint32_t mover, owner;
    bool is_put;
  };
  // Called before each move, by the rank that makes it.
  void before_moves(std::function<void(const Move&)> hook) { before_moves_ = std::move(hook); }
  // Called before a rank looks whether that one lives.
  void before_looks(std::function<void(uint32_t rank)> hook) { before_looks_ = std::move(hook); }
  // Whether a rank has given up, in the lease that was made last.
  bool is_aborted();
  // So often other memory was to be read or written.
  uint32_t moves() const { return moves_; }
  // A rank's own memory is out of the others' reach.
  void hide_memory_of(uint32_t rank) { hidden_ = rank; }
  // So long the leader takes to offer, and rank 1 to take it up.
  void dawdle(std::chrono::milliseconds before_offers, std::chrono::milliseconds before_taking_up) {
    before_offers_ = before_offers;
    before_taking_up_ = before_taking_up;
  }
  // That rank has no room for slots; no rank, if there is none of that number.
  void refuse_slots(uint32_t rank) { without_slots_ = rank; }
  // So often ranks wanted slots reserved; so many bytes of slots were written that were not.
  uint32_t reservations() const { return reservations_; }
  size_t touched() const { return touched_; }
  // So many ranks could not take up what was offered, in all.
  uint32_t missing() const { return missing_; }
  // A rank that can't reach the memory, however often it tries.
  void blind(uint32_t rank) { blind_ = rank; }

 private:
  friend class HeapFetcher;
  friend class HeapSource;
  friend class HeapArena;
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  ArenaHeader* last_ = nullptr;
  std::atomic<uint32_t> dead_{~0U}, missing_{0}, moves_{0}, reservations_{0}, without_slots_{~0U};
  std::atomic<size_t> touched_{0};
  uint32_t blind_ = ~0U, hidden_ = ~0U, failing_ = 0;
  int error_ = 0;
  Move parted_{~0U, ~0U, false};
  std::function<void(const Move&)> before_moves_;
  std::function<void(uint32_t)> before_looks_;
  std::chrono::milliseconds before_offers_{0}, before_taking_up_{0};
  bool fetches_ = true;
};

}  // namespace sluice::testing
