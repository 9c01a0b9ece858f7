// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of alltoallv with blocks of any size. Each byte's value depends on source, target and
// index.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/unit/support/ranks.h"

namespace sluice::testing {

inline uint8_t byte_of(Rank from, Rank to, size_t i) {
  return static_cast<uint8_t>(from * 89 + to * 37 + i * 7 + i / 251);
}

// One rank's blocks for all ranks, or all ranks' blocks for one.
struct Blocks {
  std::vector<uint8_t> data;
  std::vector<size_t> counts, offsets;

  View view() {
    View view;
    view.base = reinterpret_cast<std::byte*>(data.data());
    view.counts = counts;
    view.offsets = offsets;
    return view;
  }
};

// The blocks that a rank sends; size(from, to) returns bytes.
template <typename Size>
Blocks blocks_from(const Member& member, const Size& size) {
  Blocks blocks;
  for (Rank rank = 0; rank < member.size; ++rank) {
    blocks.offsets.push_back(blocks.data.size());
    blocks.counts.push_back(size(member.rank, rank));
    for (size_t i = 0; i < blocks.counts.back(); ++i) {
      blocks.data.push_back(byte_of(member.rank, rank, i));
    }
  }
  return blocks;
}

// Room for the blocks that a rank receives.
template <typename Size>
Blocks blocks_for(const Member& member, const Size& size) {
  Blocks blocks;
  size_t total = 0;
  for (Rank rank = 0; rank < member.size; ++rank) {
    blocks.offsets.push_back(total);
    blocks.counts.push_back(size(rank, member.rank));
    total += blocks.counts.back();
  }
  blocks.data.resize(total);
  return blocks;
}

inline Call call_on(Blocks& input, Blocks& output) {
  Call call;
  call.collective = Collective::alltoallv;
  call.input = input.view();
  call.output = output.view();
  return call;
}

template <typename Size>
void exchange(Member& member, const Size& size) {
  Blocks input = blocks_from(member, size), output = blocks_for(member, size);
  const Call call = call_on(input, output);
  ASSERT_TRUE(member.team->carries(call));
  const Status status = member.team->run(call);
  ASSERT_TRUE(status.ok()) << status.message();
  for (Rank rank = 0; rank < member.size; ++rank) {
    for (size_t i = 0; i < output.counts[rank]; ++i) {
      ASSERT_EQ(output.data[output.offsets[rank] + i], byte_of(rank, member.rank, i))
          << "byte " << i << " of " << output.counts[rank] << " from rank " << rank;
    }
  }
}

}  // namespace sluice::testing
