// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas in ordinary memory, for ranks that are threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "transports/arena.h"

namespace sluice::testing {

class ArenaHub {
 public:
  // Of one rank; the hub outlives it.
  std::unique_ptr<ArenaSource> source();
  // From now on a rank is taken for dead.
  void kill(uint32_t rank);
  // Ranks can't read each other's memory.
  void forbid_fetching() { fetches_ = false; }
  // Reading that rank's memory fails from now on.
  void forget_memory_of(uint32_t rank) { forgotten_ = rank; }
  // Every so many-th time, other memory is only read or written in part, and that fails.
  void fail_every(uint32_t times) { fails_every_ = times; }
  // So often other memory was to be read or written.
  uint32_t moves() const { return moves_; }
  // A rank's own memory is out of the others' reach.
  void hide_memory_of(uint32_t rank) { hidden_ = rank; }
  // So long the leader takes to offer, and rank 1 to take it up.
  void dawdle(std::chrono::milliseconds before_offers, std::chrono::milliseconds before_taking_up) {
    before_offers_ = before_offers;
    before_taking_up_ = before_taking_up;
  }
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
  std::atomic<uint32_t> dead_{~0U}, missing_{0}, moves_{0};
  uint32_t blind_ = ~0U, forgotten_ = ~0U, hidden_ = ~0U, fails_every_ = ~0U;
  std::chrono::milliseconds before_offers_{0}, before_taking_up_{0};
  bool fetches_ = true;
};

}  // namespace sluice::testing
