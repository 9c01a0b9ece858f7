// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/long_blocks.h"

#include <new>

namespace sluice {

bool LongBlocks::leave(const Call& call, Rank rank, Rank ranks, size_t most_short) try {
  counts_.resize(size_t{2} * ranks);
  call_ = call;
  any_ = false;
  leave(&call_.input, {counts_.data(), ranks}, rank, most_short);
  leave(&call_.output, {counts_.data() + ranks, ranks}, rank, most_short);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void LongBlocks::leave(View* view, std::span<size_t> counts, Rank rank, size_t most_short) {
  for (Rank peer = 0; peer < counts.size(); ++peer) {
    const size_t count = view->counts[peer];
    const bool is_long = peer != rank && count * call_.element > most_short;
    counts[peer] = is_long ? count : 0;
    any_ |= is_long;
  }
  view->counts = counts;
}

}  // namespace sluice
