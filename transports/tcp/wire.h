// SPDX-License-Identifier: BSD-3-Clause
//
// What is sent over a TCP connection: a greeting each way, then frames. Integers are little-endian.
//
// Greeting, the first bytes each way:
//
//   bytes    what
//   0-7      "SLUICE" 0 0
//   8-11     wire version
//   12-15    1: with proofs; plus 2: what follows the greetings goes through a filter (encryption),
//            and if only one side says so, the link fails; plus 4, in an answer with proofs: the
//            sender refuses, because its link has failed
//   16-31    the sender's process
//   32-47    the process that it wants to reach
//   48-63    without proofs the key that the latter published with its address, else a proof
//   64-71    the sender's window, in bytes
//   72-87    with proofs only: 16 random bytes of this connection (a nonce)
//
// If both processes have a Prover (transports/conduit.h), which their addresses say, their
// greetings have proofs. The connecting side waits for the answer, and sends 16 bytes, its last
// proof, before anything else. The accepting side keeps a connection only after that proof:
//
//   connecting side   greeting, nonce ->                      last proof, frames ->
//   accepting side                       <- greeting, nonce
//
// All three proofs need the key of these two processes, which each computes from the other's public
// key (Prover::agree), and each covers all that was said before it (transports/tcp/proofs.h). So a
// recorded greeting lets nobody in, because the nonces differ.
//
// Without proofs, the connecting side sends frames directly after its greeting, and the accepting
// side answers with its own when it knows the peer's key. A connection whose greeting has a wrong
// key or proof gets no answer.
//
// Frame:
//
//   bytes    what             in
//   0        type             all
//   1        flags            data: 1, it takes room in the window
//   2-3      0
//   4-7      payload length   data, abort (text), offer, accept, decline; else 0
//   8-23     team: leader     all of a team
//   24-27    team: number     all of a team
//   28-31    call             data, rts, cts
//   32-35    ordinal          data, rts, cts
//   36-39    segment          data, rts, cts
//   40-43    signature        data, rts
//   44-47    credit           data, credit: bytes of the team's window that are free again
//   48-55    size             data, rts
//   56-      payload          data, abort, offer, accept, decline
//
//   data      a message
//   rts       a message that finds no room in its window
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
//
// The last five belong to the link, the others to a team.
//
// A data frame takes the bytes of its payload and header in the window. If the window opens before
// the CTS comes, the sender may send an announced message in the window, and ignores that CTS.
#pragma once

#include <endian.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transports/conduit.h"
#include "transports/transport.h"

namespace sluice {

inline constexpr uint32_t wire_version = 6;

inline void store32(std::byte* to, uint32_t value) {
  value = htole32(value);
  std::memcpy(to, &value, sizeof(value));
}
inline void store64(std::byte* to, uint64_t value) {
  value = htole64(value);
  std::memcpy(to, &value, sizeof(value));
}
inline uint32_t load32(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return le32toh(value);
}
inline uint64_t load64(const std::byte* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return le64toh(value);
}

struct Greeting {
  static constexpr size_t bytes = 72, bytes_with_proof = 88;

  uint32_t version = wire_version;
  ProcessId from, to;
  Key key{};  // or proof
  uint64_t window = 0;
  bool proves = false, filters = false;
  Key nonce{};           // if it proves
  bool refuses = false;  // an answer, after which the connection ends

  size_t size() const { return proves ? bytes_with_proof : bytes; }
  // Writes size() bytes.
  void encode(std::byte* to_bytes) const;
  // The size of a greeting that begins with these 16 bytes.
  static size_t size_of(const std::byte* from_bytes);
  // Whether the first `count` bytes may begin a greeting.
  static bool may_begin(const std::byte* from_bytes, size_t count);
  // Reads size_of(from_bytes) bytes. False if this is not a greeting. The fields of the first 72
  // bytes are the same in all versions.
  bool decode(const std::byte* from_bytes);
};

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
  shift
};

struct Frame {
  static constexpr size_t bytes = 56;

  FrameType type = FrameType::data;
  bool charged = false;
  uint32_t length = 0;
  TeamId team{};
  Tag tag{};
  uint32_t credit = 0;

  void encode(std::byte* to) const;
  // False if no peer of this version sends such a frame.
  bool decode(const std::byte* from);
};

}  // namespace sluice
