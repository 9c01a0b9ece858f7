// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/frame.h"

#include "transports/little_endian.h"

namespace sluice {

void Frame::encode(std::byte* to) const {
  store32(to, static_cast<uint32_t>(type) | (charged ? 1U << 8 : 0U) | uint32_t{team.part} << 16);
  store32(to + 4, length);
  store_process(to + 8, team.leader);
  store32(to + 24, team.number);
  store32(to + 28, tag.call);
  store32(to + 32, tag.ordinal);
  store32(to + 36, tag.segment);
  store32(to + 40, tag.signature);
  store32(to + 44, number);
  store64(to + 48, tag.size);
}

bool Frame::decode(const std::byte* from) {
  const uint32_t head = load32(from);
  type = static_cast<FrameType>(head & 0xFF);
  charged = (head >> 8 & 1) != 0;
  length = load32(from + 4);
  team = {load_process(from + 8), load32(from + 24), static_cast<uint16_t>(head >> 16)};
  tag = {load32(from + 28), load32(from + 32), load32(from + 36), load32(from + 40),
         load64(from + 48)};
  number = load32(from + 44);
  const bool known =
      type >= FrameType::data && type <= FrameType::unread && (head >> 9 & 0x7F) == 0;
  return known &&
         (length == 0 || type == FrameType::data || type == FrameType::abort ||
          type == FrameType::offer || type == FrameType::accept || type == FrameType::decline ||
          type == FrameType::spread || type == FrameType::rget);
}

}  // namespace sluice
