// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of a communicator exchange at its first collective, before there is a team: their
// identities, addresses and settings. All ranks see the same hellos, so all draw the same
// conclusions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/shm/arena.h"
#include "transports/transport.h"

namespace sluice {

// Whether a rank can take part in a team, and if not, why: it lacks memory, or an earlier call on
// the communicator failed there. One byte, the same in all versions.
enum class Verdict : uint8_t { ready, memory, failed };

// Ok if all are ready; else Code::aborted, which names the ranks that are not, and the reason.
Status judge(std::span<const Verdict> verdicts);

// An offer of an arena, as the leader (rank 0) sends it to the other ranks.
struct ArenaOffer {
  bool made = false;
  ArenaSource::Offer where{};
};

// One process's introduction. Its wire size (`packed_size` bytes) and its first word, which names
// the layout, are the same in all versions, so that different versions can tell that they differ.
struct Hello {
  static constexpr size_t packed_size = 528;
  static constexpr size_t longest_address = 186;

  std::string version;  // of the library; up to 23 bytes
  Peer self;            // process, address and label (up to 88 bytes), which names the host
  // The fields that may change from one introduction of a process to the next.
  struct Volatile {
    static constexpr size_t packed_size = 176;

    TeamId kept;  // in this rank's team cache, for these ranks (team_cache.h); zeros: none
    uint32_t teams_formed = 0;  // the leader's is the new team's number
    uint64_t hints_digest = 0;  // of the communicator's hints as text (hints.h)
    uint32_t hints_size = 0;    // bytes of that text, which is exchanged only if digests differ
    bool lacks = false;         // resources for further connections: MPI keeps the communicator
    bool sees_devices = false;  // a driver of devices is loaded
    Verdict verdict = Verdict::ready;
    // An earlier team of these ranks (team_cache.h), and the segment that this rank maps for
    // them. Zeros: none, or this rank needs more exchanges.
    TeamId known;
    SegmentName held;
    ArenaOffer offer;  // the leader's, in that segment

    // Writes the first `packed_size` bytes of a hello.
    void pack(std::span<std::byte> bytes) const;
  } current;
  uint64_t host = 0;  // equal for processes that may share memory; 0: not known
  uint64_t settings_digest = 0;
  uint64_t choices_digest = 0;  // of the file of choices (outcomes.h); 0: none. May differ
  uint32_t settings_size = 0;   // bytes of the settings' text, exchanged only if digests differ
  bool able = true;             // has an endpoint; if not, and not `lacks`, settings are invalid
  bool strict = true;           // SLUICE_ON_MISMATCH=abort

  void pack(std::span<std::byte> bytes) const;
  // False if the bytes are not a hello of this layout. Does not read `known`, `held` and `offer`.
  bool unpack(std::span<const std::byte> bytes);
};

// The host of each rank, numbered as in Shape; empty if any rank does not know its host.
std::vector<uint32_t> number_hosts(std::span<const Hello> hellos);

// These read all ranks' hellos without allocating. packed: the hellos, one after another.
//
// Whether all ranks name the same team of their team caches.
bool have_kept_the_same(std::span<const std::byte> packed);
// Whether all ranks remember the same earlier team and map the same segment. *number: of the new
// team. *offer: the leader's, in that segment.
bool know_the_same(std::span<const std::byte> packed, uint32_t* number, ArenaOffer* offer);
// Whether any rank sees devices.
bool any_sees_devices(std::span<const std::byte> packed);
// Ok if all are hellos of this layout and all ranks are ready. Otherwise it may throw
// std::bad_alloc.
Status check_hellos(std::span<const std::byte> packed);

uint64_t digest(const std::string& text);

// The values in a text of "NAME=value" lines, by name.
std::map<std::string, std::string> values_of(const std::string& text);

// "pid 4711 on host n12".
std::string label_process(int pid, const std::string& host);

// How ranks differ: "SLUICE_SEGMENT is '64k' on rank 3, '128k' on ranks 0-2"; differences are
// separated by "; ". texts: each rank's values, one "NAME=value" a line.
std::string describe_differences(std::span<const std::string> texts);

// "rank 3", "ranks 0-2, 5". ranks: ascending.
std::string describe_ranks(std::span<const uint32_t> ranks);

}  // namespace sluice
