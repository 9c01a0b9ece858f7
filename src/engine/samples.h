// SPDX-License-Identifier: BSD-3-Clause
//
// Samples of a trial (trial.h): how long a call took the team, from the last rank's entry to the
// last rank's exit. A rank's own duration lies: an early rank measures how late the others are, and
// the root of a broadcast may leave before anybody has come.
//
// The ranks of a host have one clock. Clocks of different hosts have offsets. Exchanges in which
// each rank hears from every other bound them: rank i leaves one only after rank j has entered it,
// so on one clock j's entry precedes i's exit. The bounds are as wide as the exchange is long.
// (Cristian, Probabilistic clock synchronization, 1989.) A sample is an interval for that reason.
// It is cut with the shortest and the longest duration of any rank, between which the team's time
// lies whatever the clocks say.
//
// Pure functions of what the ranks have told each other; equal on all ranks. They allocate nothing,
// because a rank that has heard the others must not fail alone.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "src/engine/trial.h"

namespace sluice {

// One call on one rank, in nanoseconds of its clock. Void: duration is `unknown`.
struct Sample {
  static constexpr float unknown = std::numeric_limits<float>::infinity();
  int64_t entry = 0;
  float duration = unknown;
  float weight = 0;  // bytes of the rank's part, where the ranks know no common size
};

inline int64_t in_nanoseconds(std::chrono::steady_clock::time_point time) {
  return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

// A rank's entry into an exchange and its exit from it, on its clock.
struct ExchangeTimes {
  int64_t entry = 0, exit = 0;
};

// Where a rank's clock is ahead of rank 0's, and how far that may be wrong; infinite: it is not
// known.
struct ClockOffset {
  double ahead = 0, error = 0;
};

// times[e][i]: of exchange e on rank i. (Several exchanges give narrower bounds than one.) offsets:
// of all ranks.
void find_clock_offsets(std::span<const std::vector<ExchangeTimes>> times,
                        std::span<ClockOffset> offsets);

// How long a call took the team. samples: of all ranks. clocks: of all ranks; empty: they have one
// clock. now: on rank 0's clock, when the offsets were measured; clocks drift before and after.
Trial::Bounds time_of_team(std::span<const Sample> samples, std::span<const ClockOffset> clocks,
                           int64_t now);

// The result of a window. windows: of all ranks, each with a sample for each call that counts.
// Calls that moved much more or less than most are left out. A candidate with fewer than three
// samples is unknown. Else its bounds are the two in the middle of its samples' bounds.
Trial::Result result_of(const Trial& trial, std::span<const std::span<const Sample>> windows,
                        std::span<const ClockOffset> clocks, int64_t now);

}  // namespace sluice
