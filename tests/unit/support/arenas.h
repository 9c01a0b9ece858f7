// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in heap memory, for ranks that are threads of one process, with faults to inject.
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
  // The source of one rank; the hub must outlive it.
  std::unique_ptr<ArenaSource> source();
  // From now on a rank counts as dead.
  void kill(uint32_t rank);
  // CMA is unavailable: ranks cannot read each other's memory.
  void forbid_cma() { has_cma_ = false; }
  // CMA is unavailable from `mover` to the memory of `owner`.
  void part(uint32_t mover, uint32_t owner) { parted_ = {mover, owner, false}; }
  // The n-th copy from now on, counted from 1, is done in part and fails with this error.
  void fail_move(uint32_t n, int error) {
    failing_ = moves_ + n;
    error_ = error;
  }
  // A CMA copy: `mover` reads the memory of `owner`, or writes it (is_put).
  struct Move {
    uint32_t mover, owner;
    bool is_put;
  };
  // Sets a hook that the copying rank calls before each copy.
  void before_moves(std::function<void(const Move&)> hook) { before_moves_ = std::move(hook); }
  // Sets a hook that is called before a rank checks whether `rank` is alive.
  void before_looks(std::function<void(uint32_t rank)> hook) { before_looks_ = std::move(hook); }
  // Whether a rank has aborted the most recent lease.
  bool is_aborted();
  // The number of copies attempted.
  uint32_t moves() const { return moves_; }
  // No other rank can reach this rank's memory.
  void hide_memory_of(uint32_t rank) { hidden_ = rank; }
  // Delays the leader's offers, and rank 1's take_up.
  void dawdle(std::chrono::milliseconds before_offers, std::chrono::milliseconds before_taking_up) {
    before_offers_ = before_offers;
    before_taking_up_ = before_taking_up;
  }
  // This rank has no room for slots. A number that no rank has: all have room.
  void refuse_slots(uint32_t rank) { without_slots_ = rank; }
  // How often ranks asked to reserve slots; how many bytes of unreserved slots were written.
  uint32_t reservations() const { return reservations_; }
  size_t touched() const { return touched_; }
  // How many take_up calls failed, in total.
  uint32_t missing() const { return missing_; }
  // This rank's take_up always fails.
  void blind(uint32_t rank) { blind_ = rank; }

 private:
  friend class HeapCma;
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
  bool has_cma_ = true;
};

}  // namespace sluice::testing
