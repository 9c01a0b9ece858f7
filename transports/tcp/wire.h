// SPDX-License-Identifier: BSD-3-Clause
//
// What goes over a TCP connection: a greeting each way, then frames. All integers little-endian.
//
// Greeting, the first bytes each way:
//
//   bytes    what
//   0-7      "SLUICE" 0 0
//   8-11     wire version
//   12-15    0
//   16-31    the sender's process
//   32-47    the process it means to reach
//   48-63    the key which that process gave out with its address
//   64-71    the sender's window, in bytes
//
// The connecting side sends frames right behind its greeting. The accepting side answers with its
// own, once it knows the other's key; who does not know its key gets no answer.
//
// Frame:
//
//   bytes    what             in
//   0        type             all
//   1        flags            data: 1, it takes room in the window
//   2-3      0
//   4-7      payload length   data, abort (text), offer; else 0
//   8-23     team: leader     all of a team
//   24-27    team: number     all of a team
//   28-31    call             data, announce, grant
//   32-35    ordinal          data, announce, grant
//   36-39    segment          data, announce, grant
//   40-43    what             data, announce
//   44-47    credit           data, credit: so many bytes of the team's window are free again
//   48-      payload          data, abort, offer
//
//   data      a message
//   announce  a message that finds no room in its window
//   grant     an announced message's receive is posted: it may come, window or not
//   credit    see above
//   abort     the team is done for, and why
//   bye       the process is done; the last frame
//   offer     a shortcut (transports/conduit.h), from the connecting side, and how to attach to it
//   decline   the offer is not taken
//   shift     the last frame over this socket: what follows goes by the shortcut. The accepting
//   side
//             takes the offer with it, and the connecting side does the same once it has read that.
//             What the socket carries from then on means nothing and wakes who sleeps.
//
// The last four are the link's, the others a team's.
//
// A data frame takes its payload and this header of the window; an announced one may be sent in the
// window too, if it opens before the grant comes (which then is for nothing).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace sluice {

inline constexpr uint32_t wire_version = 2;

using Key = std::array<std::byte, 16>;

inline void store32(std::byte* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}
inline void store64(std::byte* to, uint64_t value) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}
inline uint32_t load32(const std::byte* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<uint32_t>(from[i]) << (8 * i);
  return value;
}
inline uint64_t load64(const std::byte* from) {
  return load32(from) | uint64_t{load32(from + 4)} << 32;
}

struct Greeting {
  static constexpr size_t bytes = 72;

  uint32_t version = wire_version;
  ProcessId from, to;
  Key key{};
  uint64_t window = 0;

  void encode(std::byte* to_bytes) const;
  // Whether the first bytes there are may be those of a greeting.
  static bool may_begin(const std::byte* from_bytes, size_t count);
  // False if this is no greeting at all. Fields behind the version are the same in all versions.
  bool decode(const std::byte* from_bytes);
};

enum class FrameType : uint8_t {
  data = 1,
  announce,
  grant,
  credit,
  abort,
  bye,
  offer,
  decline,
  shift
};

struct Frame {
  static constexpr size_t bytes = 48;

  FrameType type = FrameType::data;
  bool charged = false;
  uint32_t length = 0;
  TeamId team{};
  Tag tag{};
  uint32_t credit = 0;

  void encode(std::byte* to) const;
  // False if no peer of this version sends such a thing.
  bool decode(const std::byte* from);
};

}  // namespace sluice
