// SPDX-License-Identifier: BSD-3-Clause
//
// The greeting: the first bytes each way over a connection. Frames follow
// (transports/link/frame.h). Integers are little-endian.
//
//    0  "SLUICE" 0 0     12  flags (below)   32  receiver's process      64  sender's window, bytes
//    8  wire version     14  rail's number   48  receiver's published    72  with proofs: a nonce,
//                        16  sender's process    key, or a proof             16 random bytes
//   then, to resume a link: bytes of frames sent, received (8 bytes each), number of the search (8)
//
//   flags: 1 with proofs   2 a filter (encryption) follows, on both sides or not at all
//          4 an answer that refuses: the link has failed   8 an invitation to greet
//          16 resumes a link whose connection broke (transports/link/resumption.h)
//
// The side with the lower process id asks, whichever side connected. If the other side did, it
// invites first (meeting.h). A wrong key or proof gets no answer.
//
//   without proofs   asking side      greeting, frames ->
//                    answering side                       <- greeting
//   with proofs      asking side      greeting ->                       last proof, frames ->
//                    answering side                       <- greeting
//
// Both have proofs if both have a Prover (transports/conduit.h). Each proof covers all that was
// sent before it (transports/tcp/proofs.h), so a replayed one lets nobody in. Without proofs the
// asking side also waits for the answer if it resumes (its last proof is the key) or makes a rail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/conduit.h"
#include "transports/transport.h"

namespace sluice {

inline constexpr uint32_t wire_version = 11;

// Bytes of frames, as a filter or an upgrade is given them, over all connections of two processes
// so far.
struct ByteCounts {
  uint64_t sent = 0, received = 0;
};

struct Greeting {
  static constexpr size_t bytes = 72, bytes_with_proof = 88;
  static constexpr size_t bytes_of_counts = 24;  // and the number
  static constexpr size_t most_bytes = bytes_with_proof + bytes_of_counts;

  uint32_t version = wire_version;
  ProcessId from, to;
  Key key{};  // or proof
  uint64_t window = 0;
  bool proves = false, filters = false;
  Key nonce{};           // if it proves
  bool refuses = false;  // an answer, after which the connection ends
  bool invites = false;  // the other side is to greet over this connection
  bool resumes = false;  // the connection takes the place of one that broke
  ByteCounts counts{};   // if it resumes
  uint64_t search = 0;   // if it resumes
  uint32_t rail = 0;     // 0: none

  size_t size() const {
    return (proves ? bytes_with_proof : bytes) + (resumes ? bytes_of_counts : 0);
  }
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

}  // namespace sluice
