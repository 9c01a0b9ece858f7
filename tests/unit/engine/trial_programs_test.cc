// SPDX-License-Identifier: BSD-3-Clause
//
// What trials make of programs and machines: calls of various times, disturbances, loads that move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "tests/unit/engine/played_trial.h"

namespace sluice {
namespace {

// A uniform number from 0 to 1.
double next_fraction(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) / static_cast<double>(uint64_t{1} << 53);
}

// Where the first call after another candidate's takes longer.
TEST(TrialOfProgram, is_not_misled_by_cold_calls) {
  uint8_t last = ruled;
  PlayedTrial played([&](uint8_t candidate, uint64_t) {
    const bool is_cold = std::exchange(last, candidate) != candidate;
    return candidate == ruled ? 62'000 : is_cold ? 67'000 : 40'000;
  });
  played.calls(200);
  EXPECT_EQ(played.trial.choice(), by_mpi);
  played.calls(20000);
  EXPECT_EQ(played.trial.choice(), by_mpi);
  EXPECT_EQ(played.changes, 1U);
}

// CallTimes that scatter by a tenth, and some calls that another program holds up.
TEST(TrialOfProgram, does_not_flap_between_equal_candidates) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    PlayedTrial played([&](uint8_t, uint64_t) {
      const double time = 10000 * (0.9 + 0.2 * next_fraction(random));
      return random() % 50 == 0 ? time * 20 : time;
    });
    played.calls(100000);
    EXPECT_EQ(played.changes, 0U) << "seed " << seed;
    EXPECT_GT(played.began.size(), 50U) << "it is tried again and again";
  }
}

TEST(TrialOfProgram, loses_a_hundredth_of_the_time) {
  for (const double factor : {0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.3, 1.5, 2.0}) {
    PlayedTrial played(fixed_times(1000 * factor, 1000));
    played.overhead = 2000;
    const double best = 1000 * (factor > Trial::margin ? 1 : factor);
    played.calls(20000);
    // Until MPI takes over, the slower way is in force; that is no cost of trials.
    const double before = factor > Trial::margin ? (64 + 2 * 9) * 1000 * (factor - 1) : 0;
    EXPECT_LE(played.lost - before, 20000 * best * 1.01) << factor;
    EXPECT_GT(played.began.size(), 5U);
  }
}

// When a job starts, one candidate's calls take a scheduler's tick for a while.
struct DisturbedStart {
  uint8_t candidate;
  double tick, lasts;  // nanoseconds
};

// Plays that, with usual times in which the rules' candidate takes 3000 and MPI 9000, or the other
// way round. Returns what is the choice 100 ms after the disturbance, and counts changes.
uint8_t choice_after(const DisturbedStart& start, double of_ruled, double of_mpi,
                     uint32_t* changes) {
  double since = 0;  // the class began to be tried
  PlayedTrial played([&](uint8_t candidate, uint64_t call) {
    if (call < Trial::calls_before_trying) return of_ruled;
    const bool is_disturbed = candidate == start.candidate && since < start.lasts;
    const double time = is_disturbed ? start.tick : candidate == ruled ? of_ruled : of_mpi;
    since += time;
    return time;
  });
  while (since < start.lasts + 100e6) (void)played.call();
  *changes = played.changes;
  return played.trial.choice();
}

TEST(TrialOfProgram, a_disturbed_start_decides_nothing_for_long) {
  uint32_t most_changes = 0, changes = 0;
  for (const double tick : {50e3, 1e6, 4e6}) {
    for (const double lasts : {5e6, 20e6, 40e6}) {
      EXPECT_EQ(choice_after({ruled, tick, lasts}, 3000, 9000, &changes), ruled)
          << tick << ", " << lasts;
      most_changes = std::max(most_changes, changes);
      EXPECT_EQ(choice_after({by_mpi, tick, lasts}, 9000, 3000, &changes), by_mpi)
          << tick << ", " << lasts;
    }
  }
  EXPECT_EQ(most_changes, 2U) << "some of them hand over, and back";
}

TEST(TrialOfProgram, tries_again_at_once_when_times_have_shifted) {
  for (const double shift : {0.4, 2.5}) {
    PlayedTrial played([=](uint8_t, uint64_t call) { return call < 3000 ? 1000 : 1000 * shift; });
    played.calls(8000);
    const auto first = std::ranges::upper_bound(played.began, 3000U);
    ASSERT_GT(played.began.end() - first, 3);
    EXPECT_EQ(first[1] - first[0], 17U) << "at once";
    EXPECT_EQ(first[2] - first[1], 17U + Trial::first_gap) << "once, and soon again";
    EXPECT_EQ(first[3] - first[2], 17U + 2 * Trial::first_gap);
  }
  PlayedTrial busy([](uint8_t, uint64_t call) { return call / 17 % 2 == 0 ? 1000 : 5000; });
  busy.calls(20000);
  EXPECT_EQ(busy.changes, 0U);
  EXPECT_LE(busy.began.size(), 20000 / Trial::first_gap * 2) << "two windows a gap at most";
}

TEST(TrialOfProgram, notices_a_load_that_moves) {
  std::mt19937_64 random(43);
  for (int round = 0; round < 300; ++round) {
    const uint64_t moved = 100 + random() % 20000;
    const bool is_first = random() % 2 == 0;
    PlayedTrial played([=](uint8_t candidate, uint64_t call) {
      return ((candidate == by_mpi) == is_first) == (call < moved) ? 1000 : 2000;
    });
    played.calls(moved);
    EXPECT_EQ(played.trial.choice(), is_first ? by_mpi : ruled) << moved;
    played.calls(1100);
    EXPECT_EQ(played.trial.choice(), is_first ? ruled : by_mpi) << moved;
  }
}

// The first call of two is MPI's strength, the second its weakness. Windows in a row count
// different ones.
TEST(TrialOfPeriodicProgram, has_two_calls_that_mpi_does_unlike) {
  for (const uint64_t start : {0U, 1U}) {
    PlayedTrial played([=](uint8_t candidate, uint64_t call) {
      return candidate == ruled ? 1000 : (call + start) % 2 == 0 ? 500 : 5000;
    });
    played.calls(20000);
    EXPECT_EQ(played.changes, 0U) << start;
  }
}

// Plays calls of which some take five times as long, depending on their place in a period, by
// candidates that are equally fast. Returns how often the choice changed.
uint32_t changes_with_period(uint32_t period, uint32_t slow, uint32_t start, uint8_t choice) {
  PlayedTrial played([=](uint8_t candidate, uint64_t call) -> double {
    if (call < 100) return candidate == choice ? 1000 : 2000;  // makes it the choice
    return (slow >> (call + start) % period & 1) != 0 ? 5000 : 1000;
  });
  played.calls(100);
  EXPECT_EQ(played.trial.choice(), choice);
  const uint32_t before = played.changes;
  played.calls(6000);
  return played.changes - before;
}

TEST(TrialOfPeriodicProgram, has_one_call_that_takes_longer) {
  for (uint32_t period = 2; period <= 32; ++period) {
    for (uint32_t start = 0; start < period; ++start) {
      for (const uint8_t choice : {ruled, by_mpi}) {
        EXPECT_EQ(changes_with_period(period, 1, start, choice), 0U) << period << " " << start;
      }
    }
  }
}

// (With five and more calls in a period, there are patterns that two windows in a row take for a
// difference.)
TEST(TrialOfPeriodicProgram, has_several_calls_that_take_longer) {
  for (uint32_t period = 2; period <= 4; ++period) {
    for (uint32_t slow = 1; slow < 1U << period; ++slow) {
      for (uint32_t start = 0; start < period; ++start) {
        for (const uint8_t choice : {ruled, by_mpi}) {
          EXPECT_EQ(changes_with_period(period, slow, start, choice), 0U) << period << " " << slow;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice
