// SPDX-License-Identifier: BSD-3-Clause
//
// The vote before a call that may go from device to device by slabs (slab_phases.h), and what ranks
// tell each other in it. Where a rank's buffers lie, and whether it could take part, is known to
// that rank alone; so all count the same votes (as for NCCL: src/engine/ballot.h). Pure functions:
// the team does the exchanges.
//
//   vote -> stay:    the call goes its usual way
//        -> go:      by slabs
//        -> connect: offers (each rank's slab) -> all open all slabs -> reports -> go, or stay
//
// In each exchange of a call a rank also says whether it is well, and if not, why.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/engine/ballot.h"

namespace sluice {

// The UUID of a device.
using DeviceUuid = std::array<std::byte, 16>;

struct SlabVote {
  static constexpr size_t packed_size = 64;
  // Why this rank can't take part.
  enum class Lack : uint8_t {
    nothing,
    on_host,  // its data is not dense on one device
    unknown,  // the driver can't tell where it is
    module,   // the CUDA module has no IPC
    context,  // its data is not in the device's primary context
    kernels,  // no kernel reduces such data
    busy,     // another thread of the process uses its slabs
    failed,   // a copy has failed on its device
    small,    // (of no rank: the call is too small)
  };

  CallFacts facts;
  Lack lack = Lack::nothing;
  uint64_t slab =
      0;  // this rank's on its data's device; no two of a process are equal. 0: none yet
  DeviceUuid device = {};
  // Of an alltoallv, where ranks know no common size: the bytes that this rank sends or receives,
  // the more of the two, and those of the longest block that it sends.
  uint64_t bytes = 0, longest = 0;

  void pack(std::span<std::byte> bytes) const;
  static SlabVote unpack(std::span<const std::byte> bytes);
};
// For people: what is the matter with a rank. It names none.
const char* describe(SlabVote::Lack lack);

// What follows from the votes of all ranks, in rank order; equal on all of them.
struct SlabBallot {
  enum class Result : uint8_t { go, connect, stay, mismatch };
  // The next vote may go otherwise.
  bool is_passing() const { return lack == SlabVote::Lack::busy; }
  Result result = Result::stay;
  SlabVote::Lack lack = SlabVote::Lack::nothing;  // if they stay
  Rank rank = 0;                                  // the first that has it, or differs
  uint64_t longest = 0;                           // of all ranks' votes
};
// connected: the slabs of all ranks that all ranks have opened; empty: none. least: of an
// alltoallv, the bytes that a rank must have at least.
SlabBallot count_votes(std::span<const SlabVote> votes, std::span<const uint64_t> connected,
                       size_t least);

// When a communicator votes. All ranks call it alike, with the same results. While not all ranks
// have their data on devices, votes become rare, so that they cost host programs nothing that they
// notice.
class SlabSchedule {
 public:
  static constexpr uint32_t longest_gap = 1024;  // eligible calls between two votes
  static constexpr uint32_t most_refusals = 64;  // in a row, before votes become rare again

  // Counts an eligible call; whether it has a vote.
  bool is_due();
  // To be called after each vote, unless it found a mismatch: whether the call went by slabs, or
  // did not for a reason that may pass.
  enum class Outcome : uint8_t { went, passing, refused };
  void learn(Outcome outcome);

 private:
  bool always_ = false;  // each call votes
  uint32_t calls_ = 0;   // eligible ones since the last change
  uint32_t next_ = 1;    // of them, that votes
  uint32_t refusals_ = 0;
};

// Whether a rank is well, and why not.
struct RankReport {
  static constexpr size_t packed_size = 96, longest_text = 94;
  bool is_well = true;
  std::string why;  // cut where it is too long

  void pack(std::span<std::byte> bytes) const;
  static RankReport unpack(std::span<const std::byte> bytes);
};

// The slab of a rank, for the others to open. Without one, the reason.
struct SlabOffer {
  static constexpr size_t packed_size = 96;
  static constexpr size_t handle_size = 64;
  uint64_t slab = 0;  // as in its vote; 0: none
  std::array<char, handle_size> handle = {};
  std::string why;

  void pack(std::span<std::byte> bytes) const;
  static SlabOffer unpack(std::span<const std::byte> bytes);
};

}  // namespace sluice
