// SPDX-License-Identifier: BSD-3-Clause
//
// An alltoallv without its short blocks, which go another way. The sender and the receiver of a
// block both know its length, so both leave out the same blocks.
#pragma once

#include <span>
#include <vector>

#include "src/engine/call.h"

namespace sluice {

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

}  // namespace sluice
