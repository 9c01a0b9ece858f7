// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/wire.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

constexpr char magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 0, 0};
constexpr uint32_t proves_flag = 1, filters_flag = 2, refuses_flag = 4;

void store(std::byte* to, const ProcessId& process) {
  store64(to, process.high);
  store64(to + 8, process.low);
}

ProcessId load_process(const std::byte* from) { return {load64(from), load64(from + 8)}; }

}  // namespace

void Greeting::encode(std::byte* to_bytes) const {
  std::memcpy(to_bytes, magic, sizeof(magic));
  store32(to_bytes + 8, version);
  store32(to_bytes + 12,
          (proves ? proves_flag : 0) | (filters ? filters_flag : 0) | (refuses ? refuses_flag : 0));
  store(to_bytes + 16, from);
  store(to_bytes + 32, to);
  std::copy(key.begin(), key.end(), to_bytes + 48);
  store64(to_bytes + 64, window);
  if (proves) std::ranges::copy(nonce, to_bytes + bytes);
}

size_t Greeting::size_of(const std::byte* from_bytes) {
  return (load32(from_bytes + 12) & proves_flag) != 0 ? bytes_with_proof : bytes;
}

bool Greeting::may_begin(const std::byte* from_bytes, size_t count) {
  return std::memcmp(from_bytes, magic, std::min(count, sizeof(magic))) == 0;
}

bool Greeting::decode(const std::byte* from_bytes) {
  if (std::memcmp(from_bytes, magic, sizeof(magic)) != 0) return false;
  version = load32(from_bytes + 8);
  from = load_process(from_bytes + 16);
  to = load_process(from_bytes + 32);
  std::copy_n(from_bytes + 48, key.size(), key.begin());
  window = load64(from_bytes + 64);
  const uint32_t flags = load32(from_bytes + 12);
  proves = (flags & proves_flag) != 0;
  filters = (flags & filters_flag) != 0;
  refuses = (flags & refuses_flag) != 0;
  if (proves) std::copy_n(from_bytes + bytes, nonce.size(), nonce.begin());
  return true;
}

void Frame::encode(std::byte* to) const {
  store32(to, static_cast<uint32_t>(type) | (charged ? 1U << 8 : 0U));
  store32(to + 4, length);
  store(to + 8, team.leader);
  store32(to + 24, team.number);
  store32(to + 28, tag.call);
  store32(to + 32, tag.ordinal);
  store32(to + 36, tag.segment);
  store32(to + 40, tag.signature);
  store32(to + 44, credit);
  store64(to + 48, tag.size);
}

bool Frame::decode(const std::byte* from) {
  const uint32_t head = load32(from);
  type = static_cast<FrameType>(head & 0xFF);
  charged = (head >> 8 & 1) != 0;
  length = load32(from + 4);
  team = {load_process(from + 8), load32(from + 24)};
  tag = {load32(from + 28), load32(from + 32), load32(from + 36), load32(from + 40),
         load64(from + 48)};
  credit = load32(from + 44);
  const bool known = type >= FrameType::data && type <= FrameType::shift && head >> 9 == 0;
  return known &&
         (length == 0 || type == FrameType::data || type == FrameType::abort ||
          type == FrameType::offer || type == FrameType::accept || type == FrameType::decline);
}

}  // namespace sluice
