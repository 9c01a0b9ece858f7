// SPDX-License-Identifier: BSD-3-Clause
//
// The vote before a call that another carrier than the engine may do: CUDA IPC (src/ipc) or NCCL
// (src/nccl). Where a rank's buffers lie, and whether a carrier works there, is known to that rank
// alone. So the ranks exchange votes, about all carriers in question at once, and all draw the same
// conclusions (ballot.h). The vote also makes sure that all ranks have come before a kernel of
// NCCL's spins, and turns calls that do not match into errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/status.h"

namespace sluice {

enum class Carrier : uint8_t { ipc, nccl };
inline constexpr size_t carrier_count = 2;
// By carrier.
using CarrierSet = std::array<bool, carrier_count>;

// The UUID of a device.
using DeviceUuid = std::array<std::byte, 16>;

// Facts about a call that MPI makes equal on all ranks.
struct CallFacts {
  uint32_t signature = 0;  // encode_signature (execution.h)
  uint32_t blocks = 0;     // digest of the blocks' sizes, if they differ
  uint64_t bytes = 0;      // Call::bytes
  uint32_t type = 0, operation = 0;
  bool operator==(const CallFacts&) const = default;
};

// How another rank's call differs from this one's: a mismatch, for people.
Status describe_difference(const CallFacts& mine, const CallFacts& other);

// Why a carrier does not do a call.
enum class Lack : uint16_t {
  nothing,
  // Of one rank.
  on_host,   // its data is not dense on one device
  unknown,   // the driver can't tell where its data is
  library,   // the CUDA module or NCCL, or a driver or device that it can use
  settings,  // they ask for what NCCL would not do
  context,   // its data is not in the device's primary context
  kernels,   // no kernel reduces such data
  memory,    // room on the device for data that is not dense there
  busy,      // the carrier serves another communicator of this process
  starting,  // NCCL is being started for these ranks
  failed,    // the carrier has failed on this rank
  given_up,  // for a failure elsewhere, or with a call
  // Seen from all votes.
  version,        // ranks have several
  shared_device,  // NCCL needs one for each rank
  not_started,    // NCCL, for these ranks
  small,          // the call
};
// For people: what is the matter with a rank. It names none.
const char* describe(Carrier carrier, Lack lack);

// Whether a rank could take part in a call by one carrier.
struct Ability {
  enum class Data : uint16_t { elsewhere, on_device };

  uint64_t group = 0;  // IPC: its slab on its data's device; NCCL: of these ranks; 0: none yet
  Data data = Data::elsewhere;
  Lack lack = Lack::nothing;
  uint32_t version = 0;  // of NCCL
};

// What a rank says. Sent as it is: ranks of a team run one version of the library, on processors of
// one byte order.
struct Vote {
  CallFacts facts;
  DeviceUuid device = {};  // that its data is on, if a carrier has found that out
  // Of an alltoallv, where ranks know no common size: the bytes that this rank sends or receives,
  // the more of the two, and those of the longest block that it sends.
  uint64_t bytes = 0, longest = 0;
  std::array<Ability, carrier_count> abilities;  // of the carriers that are asked

  Ability& by(Carrier carrier) { return abilities[static_cast<size_t>(carrier)]; }
  const Ability& by(Carrier carrier) const { return abilities[static_cast<size_t>(carrier)]; }
};
static_assert(std::has_unique_object_representations_v<Vote>);  // no padding, which is not set

// When a communicator votes. All ranks call it alike, with the same results. While no carrier does
// calls, votes become rare: they are held in the eligible calls 1, 2, 4, 8 ... 1024, and then in
// each 1024th, so that they cost host programs nothing that they notice.
class VoteSchedule {
 public:
  static constexpr uint32_t longest_gap = 1024;  // eligible calls between two votes
  static constexpr uint32_t gap_at_start = 8;    // while a carrier starts
  static constexpr uint32_t most_refusals = 64;  // in a row, before votes become rare again

  enum class Outcome : uint8_t {
    went,      // by a carrier: the next call votes, too
    passing,   // not, for a reason that may pass: likewise
    starting,  // not yet
    refused,
  };

  // Counts an eligible call; whether it has a vote.
  bool is_due();
  // Whether each call has one.
  bool is_due_each_time() const { return pace_ == Pace::each; }
  // To be called after each vote, unless it found a mismatch.
  void learn(Outcome outcome);

 private:
  enum class Pace : uint8_t { rare, starting, each };
  void enter(Pace pace);

  Pace pace_ = Pace::rare;
  uint32_t calls_ = 0;  // eligible ones at this pace
  uint32_t next_ = 1;   // of them, that votes
  uint32_t refusals_ = 0;
};

// What votes before calls of one kind (Trials::kind_of) have found. While trials have found that
// the engine or MPI does such calls faster than the carriers that are able, no vote could change
// who does them. Then such calls have none, and do not count in the schedule, until the trial is
// repeated, or for some calls: the program may have moved its data. Calls of a program that has
// them on devices and on the host in turns, as votes show, vote on.
class VoteRecord {
 public:
  static constexpr uint32_t enough = 8;                                 // alike, in a row
  static constexpr uint32_t most_left_out = VoteSchedule::longest_gap;  // calls in a row

  void learn(const CarrierSet& able) {
    alike_ = able == able_ ? alike_ + 1 : 1;
    able_ = able;
    left_out_ = 0;
  }
  // Whether the next call may be taken for one of which the vote found `able`.
  bool is_firm() const { return alike_ >= enough && left_out_ < most_left_out; }
  void leave_out() { ++left_out_; }
  const CarrierSet& able() const { return able_; }

 private:
  CarrierSet able_ = {};
  uint32_t alike_ = 0;     // votes in a row, up to the latest
  uint32_t left_out_ = 0;  // calls since
};

}  // namespace sluice
