// SPDX-License-Identifier: BSD-3-Clause
//
// The vote before a call that NCCL may carry. Where a rank's buffers lie, and whether it could take
// part, is known to that rank alone; so the ranks exchange votes, and all draw the same conclusion
// from them. The vote also makes sure that all ranks have come before a kernel of NCCL's spins, and
// turns calls that do not match into errors. Pure functions: the team does the exchange.
//
// Votes cost host programs nothing that they notice: a communicator votes in its eligible calls 1,
// 2, 4, 8 ... 1024, and then in each 1024th, until all ranks had their buffers on devices twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/algorithm.h"
#include "src/base/status.h"

namespace sluice {

// Facts about a call that MPI makes equal on all ranks.
struct CallFacts {
  uint32_t signature = 0;  // encode_signature (execution.h)
  uint64_t bytes = 0;      // Call::bytes
  uint8_t type = 0, operation = 0;
  uint32_t blocks = 0;  // digest of the blocks' sizes, if they differ
  bool operator==(const CallFacts&) const = default;
};

// What one rank says about a call.
struct Vote : CallFacts {
  static constexpr size_t packed_size = 48;
  // Why this rank can't take part.
  enum class Lack : uint8_t {
    nothing,
    library,   // NCCL, or a driver or device that it can use
    settings,  // they ask for what NCCL would not do
    memory,    // room on the device for data that is not dense there
    busy,      // NCCL serves, or is being started for, another communicator of this process
    start,     // it is being started for this one
    failure,   // it could not be, or has failed on this rank
    given_up,  // for a failure elsewhere, or with a call
  };

  bool on_device = false;  // its data is dense on one device (a rank without data counts as such)
  Lack lack = Lack::nothing;
  uint32_t version = 0;                   // of NCCL; ranks need the same one
  uint64_t group = 0;                     // that this rank has for these ranks; 0: none
  std::array<std::byte, 16> device = {};  // its UUID; NCCL takes one rank a device

  void pack(std::span<std::byte> bytes) const;
  static Vote unpack(std::span<const std::byte> bytes);
  const CallFacts& facts() const { return *this; }
  bool is_about_the_same_call(const Vote& other) const { return facts() == other.facts(); }
};

// How another rank's call differs from this one's: a mismatch, for people.
Status describe_difference(const CallFacts& mine, const CallFacts& other);

// What follows from the votes of all ranks, in rank order; equal on all of them.
struct Ballot {
  enum class Result : uint8_t {
    go,        // NCCL carries the call
    stay,      // it does not
    mismatch,  // ranks are in different calls
  };
  enum class Reason : uint8_t {
    none,
    other_call,
    failure,
    given_up,  // on ranks that do not know of a failure
    on_host,
    library,
    settings,
    memory,
    busy,
    version,
    shared_device,
    starting,
    no_group,
  };
  Result result = Result::stay;
  bool all_on_device = false;
  bool could_start = false;   // they are, and nothing is in the way but that NCCL is not started
  bool has_failed = false;    // on a rank, or was given up: NCCL will never serve
  bool is_starting = false;   // on a rank, and nothing else is in the way
  bool shares_group = false;  // all ranks have the same group
  // Later votes may go otherwise.
  bool is_passing() const { return reason == Reason::busy; }
  Reason reason = Reason::none;  // unless the result is go
  Rank rank = 0;                 // the first that it is about
};
// For people: what is the matter with that rank. It names no rank.
const char* describe(Ballot::Reason reason);

// Most ranks' data must lie on devices; that of the others goes through scratch there.
Ballot count_votes(std::span<const Vote> votes);

// Which reasons a communicator's users have been told. All ranks call it alike.
class Announced {
 public:
  // Whether to log this: why NCCL does not carry calls although all ranks' data is on devices, or
  // that it never will. Each reason is logged once.
  bool is_news(const Ballot& ballot);

 private:
  uint32_t reasons_ = 0;  // a bit for each
};

// When a communicator votes, and what it does about the result. All ranks call it alike, with the
// same results.
class VoteSchedule {
 public:
  enum class Stage : uint8_t {
    watching,  // whether all ranks' buffers are on devices
    starting,  // NCCL's communicator is being made
    ready,
    failed,  // never again
  };
  enum class Action : uint8_t {
    carry_on,  // the call goes its usual way
    start,     // so does this one, and NCCL's communicator is to be made
    run,       // NCCL carries the call
    give_up,   // as carry_on, and NCCL will not be used: to be said once
  };
  static constexpr uint32_t longest_gap = 1024;  // eligible calls between two votes
  static constexpr uint32_t gap_at_start = 8;    // while NCCL starts
  static constexpr uint32_t enough = 2;          // votes with all on devices, in a row
  static constexpr uint32_t most_refusals = 64;  // in a row, before it watches again

  // Counts an eligible call; whether it has a vote.
  bool is_due();
  // To be called after each vote, unless it found a mismatch.
  Action learn(const Ballot& ballot);
  Stage stage() const { return stage_; }

 private:
  void enter(Stage stage);
  Action watch(const Ballot& ballot);
  Action refuse(const Ballot& ballot);

  Stage stage_ = Stage::watching;
  uint32_t calls_ = 0;     // eligible ones in this stage
  uint32_t next_ = 1;      // of them, that votes
  uint32_t in_a_row_ = 0;  // votes with all on devices, or refusals
};

}  // namespace sluice
