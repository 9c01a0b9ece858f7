// SPDX-License-Identifier: BSD-3-Clause
//
// How a large message is cut into parts that go over several rails (rails.h) at once. The idea of
// rails as data, and of a scheduler apart from them, is that of aws-ofi-nccl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice {

// A part of a message. The parts of a message follow each other in its bytes.
struct Share {
  uint32_t rail = 0;  // its number
  uint32_t bytes = 0;
};

// A rail, and the bytes on it that the peer's kernel has not acknowledged yet.
struct Load {
  uint32_t rail = 0;
  size_t queued = 0;
};

// Bytes: of the smallest message that is spread, and of its smallest part. Less costs more system
// calls than it gains.
inline constexpr size_t least_spread = size_t{64} << 10, least_part = size_t{32} << 10;

// Cuts a message so that all rails that get a part would come to their ends together if they were
// equally fast. So a slow one, where more is queued, gets less. Of equal loads the first go first.
// Without a rail there is no part.
std::vector<Share> cut(size_t bytes, std::vector<Load> rails);

// The payload of a SPREAD frame: each part's rail and bytes, 4 bytes each, little-endian.
std::vector<std::byte> encode(std::span<const Share> parts);
// False if it is none, or the parts are not those of a message of so many bytes.
bool decode(const std::string& payload, size_t bytes, std::vector<Share>* parts);

}  // namespace sluice
