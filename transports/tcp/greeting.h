// SPDX-License-Identifier: BSD-3-Clause
//
// The greeting: the first bytes each way over a connection. Frames follow
// (transports/link/frame.h). Integers are little-endian.
//
//   bytes    what
//   0-7      "SLUICE" 0 0
//   8-11     wire version
//   12-15    1: with proofs; plus 2: what follows the greetings goes through a filter (encryption),
//            and if only one side says so, the link fails; plus 4, in an answer: the sender
//            refuses, because its link has failed; plus 8: the sender invites (below); plus 16: the
//            connection takes the place of one that broke (transports/link/resumption.h), and
//            counts and a number follow. In bytes 14-15, the number of the rail that the connection
//            is to be (transports/link/rails.h)
//   16-31    the sender's process
//   32-47    the process that it wants to reach
//   48-63    without proofs the key that the latter published with its address, else a proof
//   64-71    the sender's window, in bytes
//   72-87    with proofs only: 16 random bytes of this connection (a nonce)
//   then     with counts only: the bytes of frames that the sender has sent and received over all
//            connections of the two so far, 8 each (frames go on in the middle of one); and 8
//            bytes: the number of the asking side's search, in its answer the same, and in an
//            invitation that of the connection which broke
//
// The asking side greets, and the answering side answers (meeting.h), whichever of them made the
// connection. If the answering side did, it first sends a greeting that invites, with a key or the
// first proof like any other, and nothing answers that but the asking side's own greeting, or its
// refusal.
//
// If both processes have a Prover (transports/conduit.h), which their addresses say, their
// greetings have proofs. The asking side waits for the answer, and sends 16 bytes, its last
// proof, before anything else. The answering side keeps a connection only after that proof:
//
//   asking side      greeting, nonce ->                      last proof, frames ->
//   answering side                      <- greeting, nonce
//
// All three proofs need the key of these two processes, which each computes from the other's public
// key (Prover::agree), and each covers all that was said before it (transports/tcp/proofs.h). So a
// recorded greeting lets nobody in, because the nonces differ.
//
// Without proofs, the asking side sends frames directly after its greeting, and the answering
// side answers with its own when it knows the peer's key. (With counts the asking side waits for
// the answer, and its last proof is the key once more. For a rail it waits for the answer, too.) A
// connection whose greeting has a wrong key or proof gets no answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/conduit.h"
#include "transports/transport.h"

namespace sluice {

inline constexpr uint32_t wire_version = 8;

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
  uint64_t search = 0;   // the same
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
