// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/alltoallv.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/base/copy.h"

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

bool PaddedAlltoallv::fill(const Call& call, Rank rank, Rank ranks, size_t cell) {
  const size_t bytes = ranks * cell;
  if (!memory_.reserve(2 * bytes) || !rest_.leave(call, rank, ranks, room(cell))) return false;
  call_ = cells_ = call;
  rank_ = rank;
  ranks_ = ranks;
  cell_ = cell;
  cells_.element = 1;
  cells_.input = {};
  cells_.input.base = memory_.data();
  cells_.output = {};
  cells_.output.base = memory_.data() + bytes;
  cells_.input.count = cells_.output.count = cell;
  count();
  for (Rank to = 0; to < ranks; ++to) pack(to);
  const size_t own = std::min(bytes_of(call.input, rank), bytes_of(call.output, rank));
  if (own > 0) copy_bytes(place_of(call.output, rank), place_of(call.input, rank), own);
  return true;
}

void PaddedAlltoallv::count() {
  own_ = {};
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const size_t bytes = bytes_of(call_.input, rank);
    own_.short_blocks += rank != rank_ && bytes > 0 && is_short(bytes);
  }
}

// (PaddedAlltoallv have one size: their unused bytes are sent too, as zeros.)
void PaddedAlltoallv::pack(Rank rank) const {
  Header header = own_;
  const size_t bytes = header.bytes = bytes_of(call_.input, rank);
  std::byte* const to = cells_.input.base + rank * cell_;
  std::memset(to, 0, cell_);
  std::memcpy(to, &header, sizeof(header));
  const bool is_own = rank == rank_;
  if (bytes == 0 || (!is_own && !is_short(bytes))) return;
  Packing* const source = call_.input.source;
  if (source != nullptr) source->move(call_.input.offsets[rank] * call_.element, bytes);
  if (!is_own) copy_bytes(to + sizeof(header), place_of(call_.input, rank), bytes);
}

Status PaddedAlltoallv::unpack(Rank* rank) {
  uint64_t short_blocks = own_.short_blocks;
  for (*rank = 0; *rank < ranks_; ++*rank) {
    if (*rank == rank_) continue;
    const std::byte* const from = cells_.output.base + *rank * cell_;
    const size_t expected = bytes_of(call_.output, *rank);
    Header header;
    std::memcpy(&header, from, sizeof(header));
    if (header.bytes != expected) {
      const uint32_t signature = encode_signature(call_.collective, call_.root);
      return describe_mismatch({signature, expected}, {signature, header.bytes});
    }
    short_blocks += header.short_blocks;
    if (expected == 0 || !is_short(expected)) continue;
    copy_bytes(place_of(call_.output, *rank), from + sizeof(header), expected);
  }
  judge(short_blocks);
  return {};
}

// Decides by a total that all ranks know: cells carried little if less than half of those between
// two different ranks held a block.
void PaddedAlltoallv::judge(uint64_t short_blocks) {
  const uint64_t cells = uint64_t{ranks_} * (ranks_ - 1);
  if (2 * short_blocks >= cells) {
    next_left_out_ = first_left_out;
    return;
  }
  memory_ = {};
  left_out_ = next_left_out_;
  next_left_out_ = std::min(2 * next_left_out_ + 1, most_left_out);
}

}  // namespace sluice
