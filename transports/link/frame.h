// SPDX-License-Identifier: BSD-3-Clause
//
// Frames: what goes over a connection after the greetings (transports/tcp/greeting.h). A frame has
// a header of 56 bytes and perhaps a payload. Integers are little-endian, unused bytes 0.
//
//   0    type (1: flags)   24  team: number   36  segment     48  size (8 bytes)
//   2    team: part        28  call           40  signature   56  payload
//   4    payload length    32  ordinal        44  number
//   8    team: leader
//
//   type     header         number       payload, or what the frame says
//   data     team to size   credit       a message; flag 1: it takes room in the window
//   rts      team to size                its message finds no room in the window
//   cts      team to segment             the receive is posted: send its message, room or not
//   credit   team           credit       room that is free again in the team's window, in bytes
//   abort    team                        why the team has failed
//   bye                                  the last frame; without it, the process has died
//   offer                                connecting side: an upgrade's maker, how to attach to it
//   accept                               accepting side has attached; what its maker adds to that
//   decline                              no upgrade: a byte (below), what the sender lacks
//   shift                                the next frame comes over the upgrade
//   spread   team to size   its bytes    how a message is cut over rails (spread.h); flag as data
//   rail                    the rail's   the last proof of this rail has come: send on it
//   rget     team to size   its bytes    where a message lies, to be got (loans.h)
//   fin      team to segment             it has been got, or no receive will
//   unread                  the part's   by that part of the carrier nothing can be got any more
//
// A message of data or spread takes the bytes of its header, too, in the window. If the window
// opens before CTS comes, the sender may send the message in the window and ignores that CTS.
// The connecting side sends SHIFT once bytes have crossed the upgrade (transports/conduit.h) both
// ways, and the accepting side once it has read that. Then this conduit carries wake-up bytes only.
// The first byte of DECLINE: 0 or 1: the offer is not accepted, or withdrawn (1: and the sender has
// no other, so the link stays here); 2: accepted, but no bytes come, so withdraw it; 3: not
// accepted, but another offer of that maker may be. Text follows; none: the receiver lacks it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace sluice {

enum class FrameType : uint8_t {
  data = 1,
  rts,
  cts,
  credit,
  abort,
  bye,
  offer,
  accept,
  decline,
  shift,
  spread,
  rail,
  rget,
  fin,
  unread
};

struct Frame {
  static constexpr size_t bytes = 56;

  FrameType type = FrameType::data;
  bool charged = false;
  uint32_t length = 0;
  TeamId team{};
  Tag tag{};
  uint32_t number = 0;  // bytes 44-47

  // It concerns an upgrade, and so one connection of the link.
  bool is_of_upgrades() const { return is_of_upgrades(type); }
  static bool is_of_upgrades(FrameType type) {
    return (type >= FrameType::offer && type <= FrameType::shift) || type == FrameType::unread;
  }
  // Bytes of the window that it frees.
  uint32_t credit() const {
    const bool is_other = type == FrameType::spread || type == FrameType::rail ||
                          type == FrameType::rget || type == FrameType::unread;
    return is_other ? 0 : number;
  }
  void encode(std::byte* to) const;
  // False if no peer of this version sends such a frame.
  bool decode(const std::byte* from);
};

}  // namespace sluice
