// SPDX-License-Identifier: BSD-3-Clause
//
// What is sent over a connection after the greetings (transports/tcp/greeting.h): frames. Integers
// are little-endian.
//
//   bytes    what             in
//   0        type             all
//   1        flags            data, spread: 1, it takes room in the window
//   2-3      0
//   4-7      payload length   data, abort (text), offer, accept, decline, spread; else 0
//   8-23     team: leader     all of a team
//   24-27    team: number     all of a team
//   28-31    call             data, rts, cts, spread
//   32-35    ordinal          data, rts, cts, spread
//   36-39    segment          data, rts, cts, spread
//   40-43    signature        data, rts, spread
//   44-47    credit           data, credit: bytes of the team's window that are free again;
//                             spread: bytes of the message; rail: its number
//   48-55    size             data, rts, spread
//   56-      payload          data, abort, offer, accept, decline, spread
//
//   data      a message
//   rts       a message that finds no room in its window; one a message
//   cts       the message's receive is posted, so it may be sent without room in the window
//   credit    bytes 44-47 alone
//   abort     the team has failed, and why
//   bye       the process is done; the last frame. A socket that closes without one tells that the
//             process has died
//   offer     an upgrade (transports/conduit.h) from the connecting side. The first byte names its
//             maker; the rest says how to attach to it
//   accept    the accepting side has attached, and what the connecting side must know of that
//   decline   the offer is not accepted, or from the connecting side, is withdrawn. The first byte
//             is 1 if that side offers no other upgrade: the link stays on this conduit. It is 2 if
//             the accepting side has accepted, but its bytes do not cross the upgrade: then the
//             connecting side withdraws the offer. It is 3 if another offer of the same maker may
//             be accepted. The rest is text that says what the sender lacks; empty: the receiver
//             does
//   shift     the last frame over this conduit; what follows goes over the upgrade, and only
//             wake-up bytes over this one. The connecting side sends it when bytes have crossed
//             the upgrade in both directions, the accepting side when it has read that.
//   spread    a message whose parts go over rails (rails.h). The payload says how it is cut
//             (spread.h)
//   rail      with proofs: the answering side has the last proof of this rail, so the asking side
//             may send on it
//
// Bye, rail and those for upgrades belong to the link, the others to a team.
//
// A data frame, or what it would be if the message were not spread, takes the bytes of its payload
// and header in the window. If the window opens before the CTS comes, the sender may send an
// announced message in the window, and ignores that CTS.
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
  rail
};

struct Frame {
  static constexpr size_t bytes = 56;

  FrameType type = FrameType::data;
  bool charged = false;
  uint32_t length = 0;
  TeamId team{};
  Tag tag{};
  uint32_t number = 0;  // bytes 44-47

  // It belongs to the negotiation of an upgrade, and so to one connection of the link.
  bool is_of_upgrades() const { return is_of_upgrades(type); }
  static bool is_of_upgrades(FrameType type) {
    return type >= FrameType::offer && type <= FrameType::shift;
  }
  // Bytes of the window that it frees.
  uint32_t credit() const {
    return type == FrameType::spread || type == FrameType::rail ? 0 : number;
  }
  void encode(std::byte* to) const;
  // False if no peer of this version sends such a frame.
  bool decode(const std::byte* from);
};

}  // namespace sluice
