// SPDX-License-Identifier: BSD-3-Clause
//
// What follows from all ranks' votes (vote.h): which carriers could do the call. A pure function of
// what is equal on all ranks; nothing else decides.
//
//               CUDA IPC                              NCCL
//   never again -                                     it has failed on a rank, or was given up
//   stay        a rank lacks something; the call      half of the data is not on devices; a rank
//               is small                              lacks something; versions, shared devices
//   connect     not all ranks have opened the slabs   -
//   start       -                                     all on devices, no common group
//   go          else                                  else
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "collectives/plan.h"
#include "src/engine/vote.h"

namespace sluice {

// What is asked.
struct Question {
  std::array<bool, carrier_count> asked = {};
  // IPC: the slabs of all ranks that all ranks have opened; empty: none.
  std::span<const uint64_t> connected = {};
  size_t least = 0;  // IPC: bytes that a rank must have at least in an alltoallv
};

// Of one carrier.
struct Finding {
  enum class Next : uint8_t { not_asked, go, connect, start, stay, never };
  // Whether the next vote may go otherwise.
  bool is_passing() const { return lack == Lack::busy; }

  Next next = Next::not_asked;
  Lack lack = Lack::nothing;  // nothing: it goes or connects
  Rank rank = 0;              // the first that lacks it
  // Of NCCL. Whether all data is on devices; whether all ranks have one group.
  bool all_on_device = false, shares_group = false;
};

struct Ballot {
  bool is_mismatch = false;  // ranks are in different calls; nothing else is set then
  uint64_t longest = 0;      // of all ranks' votes
  std::array<Finding, carrier_count> findings;

  const Finding& by(Carrier carrier) const { return findings[static_cast<size_t>(carrier)]; }
};

// votes: of all ranks, in rank order.
Ballot count_votes(std::span<const Vote> votes, const Question& question);

}  // namespace sluice
