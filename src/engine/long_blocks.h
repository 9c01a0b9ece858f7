// SPDX-License-Identifier: BSD-3-Clause
//
// What is left of an alltoallv whose short blocks go another way. Who sends a block and who
// receives it both know how long it is, so both leave it out.
#pragma once

#include <span>
#include <vector>

#include "src/engine/call.h"

namespace sluice {

class LongBlocks {
 public:
  // Leaves the blocks between this rank and others that have more than so many bytes. False if
  // there is no memory.
  bool leave(const Call& call, Rank rank, Rank ranks, size_t most_short);

  // A call whose other blocks are empty; valid until the next leave().
  const Call& call() const { return call_; }
  bool any() const { return any_; }

 private:
  void leave(View* view, std::span<size_t> counts, Rank rank, size_t most_short);

  Call call_;
  std::vector<size_t> counts_;  // sent, and received
  bool any_ = false;
};

}  // namespace sluice
