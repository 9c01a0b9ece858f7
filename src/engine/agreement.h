// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of a communicator tell each other at its first collective, before there is a team:
// who they are, how to reach them, and what they were told to do. All ranks see the same hellos and
// so come to the same verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/arena.h"
#include "transports/transport.h"

namespace sluice {

// Whether a rank can take part in a team: one byte, the same in all versions.
enum class Verdict : uint8_t { ready, memory, failed };

// Ok if all are ready; else Code::aborted, which names the ranks that are not, and why.
Status judge(std::span<const Verdict> verdicts);

// The leader's (rank 0) offer of an arena, on its way to the others.
struct ArenaOffer {
  bool made = false;
  ArenaSource::Offer where{};
};

// One process's introduction. On the wire it has one size and layout for ever (`packed_size`
// bytes), so that different versions can tell each other that they differ.
struct Hello {
  static constexpr size_t packed_size = 528;
  static constexpr size_t longest_address = 160;

  std::string version;  // of the library; up to 23 bytes
  Peer self;            // process, address and label (up to 95 bytes)
  // What differs from one of its introductions to the next.
  struct Occasion {
    static constexpr size_t packed_size = 176;

    TeamId kept;                // the team that this rank has kept for these (shelf.h); zeros: none
    uint32_t teams_formed = 0;  // the leader's numbers the team
    uint64_t hints_digest = 0;  // of the communicator's hints (hints.h) as text
    uint32_t hints_size = 0;    // bytes of that, told only if digests differ
    bool lacks = false;         // what a further connection takes: MPI keeps the communicator
    Verdict verdict = Verdict::ready;
    // A team of these ranks in which this one has been (acquaintances.h), and the segment that it
    // maps for them; zeros: none, or it needs to hear more.
    TeamId known;
    SegmentName held;
    ArenaOffer offer;  // the leader's, in that segment

    // The beginning of a hello.
    void pack(std::span<std::byte> bytes) const;
  } occasion;
  uint64_t host = 0;  // equal where processes may share memory; 0: not known
  uint64_t settings_digest = 0;
  uint32_t settings_size = 0;  // bytes of the settings' text, told only if digests differ
  bool able = true;            // has an endpoint; if not, and not `lacks`, settings are to blame
  bool strict = true;          // SLUICE_ON_MISMATCH=abort

  void pack(std::span<std::byte> bytes) const;
  // False if these are no hello's bytes.
  bool unpack(std::span<const std::byte> bytes);
};

// The host of each rank as in Shape, from what they say of theirs; empty if one can't say.
std::vector<uint32_t> number_hosts(std::span<const Hello> hellos);

// What is found in all ranks' hellos before memory is needed. packed: the hellos, one after
// another.
//
// Whether all ranks have kept the same team.
bool have_kept_the_same(std::span<const std::byte> packed);
// Whether all ranks know the same team, and map the same segment, in which the leader then offers
// an arena. These are the number of the new team, and the offer.
bool know_the_same(std::span<const std::byte> packed, uint32_t* number, ArenaOffer* offer);
// Ok if all are hellos of this layout, and all ranks are ready. Where they are not, it may throw
// std::bad_alloc.
Status look_through(std::span<const std::byte> packed);

uint64_t digest(const std::string& text);

// Of "NAME=value" lines, by name.
std::map<std::string, std::string> values_of(const std::string& text);

// How ranks differ, a line a difference: "SLUICE_SEGMENT is 64k on rank 3, 128k on ranks 0-2".
// texts: each rank's value by name, one "NAME=value" a line.
std::string describe_differences(std::span<const std::string> texts);

// "rank 3", "ranks 0-2, 5", of ascending ranks.
std::string describe_ranks(std::span<const uint32_t> ranks);

}  // namespace sluice
