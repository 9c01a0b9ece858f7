// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/spread.h"

#include <algorithm>

#include "transports/little_endian.h"

namespace sluice {
namespace {

constexpr size_t encoded_part = 8;
constexpr size_t alignment = 64;  // of where parts begin

}  // namespace

// Fills the rails up to a level, like vessels with water.
std::vector<Share> cut(size_t bytes, std::vector<Load> rails) {
  if (rails.empty()) return {};
  std::ranges::stable_sort(rails, {}, &Load::queued);
  size_t count = std::clamp<size_t>(bytes / least_part, 1, rails.size());
  size_t below = bytes;  // what would lie on the first `count` rails
  for (size_t i = 0; i < count; ++i) below += rails[i].queued;
  while (count > 1 && below / count < rails[count - 1].queued + least_part) {
    below -= rails[--count].queued;
  }
  const size_t level = below / count;
  std::vector<Share> parts(count);
  size_t left = bytes;
  for (size_t i = count; i-- > 0;) {
    const size_t room = level - std::min(level, rails[i].queued);
    const size_t share = i == 0 ? left : std::min(left, room / alignment * alignment);
    parts[i] = {rails[i].rail, static_cast<uint32_t>(share)};
    left -= share;
  }
  return parts;
}

std::vector<std::byte> encode(std::span<const Share> parts) {
  std::vector<std::byte> made(parts.size() * encoded_part);
  std::byte* to = made.data();
  for (const Share& each : parts) {
    store32(to, each.rail);
    store32(to + 4, each.bytes);
    to += encoded_part;
  }
  return made;
}

bool decode(const std::string& payload, size_t bytes, std::vector<Share>* parts) {
  if (payload.empty() || payload.size() % encoded_part != 0) return false;
  const auto* const from = reinterpret_cast<const std::byte*>(payload.data());
  parts->clear();
  size_t sum = 0;
  for (size_t at = 0; at < payload.size(); at += encoded_part) {
    parts->push_back({load32(from + at), load32(from + at + 4)});
    if (parts->back().bytes == 0) return false;
    sum += parts->back().bytes;
  }
  return sum == bytes;
}

}  // namespace sluice
