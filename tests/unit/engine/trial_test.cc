// SPDX-License-Identifier: BSD-3-Clause
//
// The state machine of trials, with a clock that the tests make up.
#include "src/engine/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "src/engine/samples.h"
#include "src/engine/trials.h"

namespace sluice {
namespace {

using TrialState = Trial::State;
using TrialDue = Trial::Due;

constexpr size_t usual_bytes = 1000;
constexpr uint8_t ruled = Trial::ruled, by_mpi = Trial::mpi;

// Nanoseconds that a call takes the team.
using CallTimes = std::function<double(uint8_t candidate, uint64_t call)>;

CallTimes fixed_times(double of_ruled, double of_mpi) {
  return [=](uint8_t candidate, uint64_t) { return candidate == ruled ? of_ruled : of_mpi; };
}

// Makes calls of a class, all of one size, and agrees whenever that is due.
class PlayedTrial {
 public:
  explicit PlayedTrial(CallTimes times, uint8_t candidates = 2)
      : trial(candidates), times_(std::move(times)) {}

  Trial::Next call() {
    if (trial.due() == TrialDue::time_spent) trial.learn_time_spent(time_spent);
    if (trial.due() == TrialDue::window) learn();
    const Trial::Next next = trial.next(usual_bytes);
    if (next.is_timed && next.place == 0) began.push_back(made);
    const double time = times_(next.candidate, made);
    if (next.is_timed) samples_[next.place] = {0, static_cast<float>(time), 0};
    lost += time;
    ++made;
    return next;
  }
  void calls(uint64_t number) {
    for (uint64_t i = 0; i < number; ++i) (void)call();
  }

  Trial trial;
  std::chrono::nanoseconds time_spent{0};  // in the first calls
  double overhead = 0;                     // of an agreement on a window
  uint64_t made = 0;
  std::vector<uint64_t> began;  // the calls with which timing began
  double lost = 0;              // nanoseconds in calls and agreements
  uint32_t changes = 0;         // of the choice

 private:
  void learn() {
    const uint8_t before = trial.choice();
    const std::span<const Sample> window(samples_);
    Trial::Result result = result_of(trial, std::span(&window, 1), {}, 0);
    result.overhead = overhead;
    trial.learn(result);
    lost += overhead;
    if (trial.choice() != before) ++changes;
  }

  CallTimes times_;
  std::array<Sample, Trial::most_candidates * Trial::turns> samples_;
};

// A uniform number from 0 to 1.
double next_fraction(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) / static_cast<double>(uint64_t{1} << 53);
}

Trial::Result result_with(std::initializer_list<double> times) {
  Trial::Result result;
  uint8_t candidate = 0;
  for (const double time : times) {
    if (time > 0) result.by_candidate[candidate] = {time, time};
    ++candidate;
  }
  return result;
}

// Makes the calls up to a full window, without leave to begin early.
void fill_window(Trial& trial) {
  while (trial.due() != TrialDue::window) {
    if (trial.due() == TrialDue::time_spent) trial.learn_time_spent({});
    trial.skip(trial.uneventful());
    if (trial.due() == TrialDue::nothing) (void)trial.next(usual_bytes);
  }
}

// Fills a window and learns what it says.
void learn_window(Trial& trial, const Trial::Result& result) {
  fill_window(trial);
  trial.learn(result);
}

TEST(Trial, waits_for_64_calls) {
  Trial trial(2);
  for (uint8_t call = 1; call <= 7; ++call) {
    EXPECT_EQ(trial.due(), TrialDue::nothing);
    EXPECT_EQ(trial.uneventful(), 0U) << "a lease would take calls that are timed";
    const Trial::Next next = trial.next(usual_bytes);
    EXPECT_EQ(next.candidate, ruled);
    EXPECT_TRUE(next.is_timed);
    EXPECT_EQ(next.place, call - 1);
  }
  EXPECT_EQ(trial.due(), TrialDue::time_spent);
  trial.learn_time_spent(Trial::long_enough - std::chrono::nanoseconds(1));
  EXPECT_EQ(trial.uneventful(), 57U);
  for (uint32_t call = 8; call <= 64; ++call) {
    EXPECT_EQ(trial.due(), TrialDue::nothing);
    EXPECT_EQ(trial.state(), TrialState::waiting);
    const Trial::Next next = trial.next(usual_bytes);
    EXPECT_EQ(next.candidate, ruled);
    EXPECT_FALSE(next.is_timed);
  }
  for (uint32_t call = 65; call <= 72; ++call) {
    EXPECT_EQ(trial.due(), TrialDue::nothing);
    EXPECT_TRUE(trial.next(usual_bytes).is_timed);
    EXPECT_EQ(trial.state(), TrialState::trying);
    EXPECT_EQ(trial.uneventful(), 0U);
  }
  EXPECT_EQ(trial.due(), TrialDue::window);
}

TEST(Trial, begins_at_once_where_calls_are_long) {
  Trial trial(2);
  for (int call = 1; call <= 7; ++call) (void)trial.next(usual_bytes);
  trial.learn_time_spent(Trial::long_enough);
  EXPECT_EQ(trial.state(), TrialState::trying);
  EXPECT_EQ(trial.due(), TrialDue::nothing);
  for (uint8_t place = 0; place < 8; ++place) {
    const Trial::Next next = trial.next(usual_bytes);
    EXPECT_TRUE(next.is_timed);
    EXPECT_EQ(next.place, place);
    EXPECT_EQ(next.candidate, trial.candidate_at(place));
  }
  EXPECT_EQ(trial.due(), TrialDue::window);
}

TEST(Trial, gives_each_candidate_as_many_turns) {
  std::vector<int> order;
  for (uint32_t place = 0; place < 8; ++place) order.push_back(Trial(2).candidate_at(place));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 1, 0, 1, 0, 0, 1})) << "Thue and Morse";
  for (const uint8_t candidates : {uint8_t{2}, uint8_t{3}, uint8_t{4}}) {
    const Trial trial(candidates);
    EXPECT_EQ(trial.window_length(), 4U * candidates);
    std::array<uint32_t, Trial::most_candidates> turns{};
    for (uint32_t place = 0; place < trial.window_length(); ++place) {
      ASSERT_LT(trial.candidate_at(place), candidates);
      ++turns[trial.candidate_at(place)];
      for (uint8_t i = 0; i < candidates && (place + 1) % candidates == 0; ++i) {
        EXPECT_EQ(turns[i], (place + 1) / candidates) << "each has one turn before any has another";
      }
    }
  }
}

TEST(Trial, hands_over_after_two_windows_in_a_row) {
  Trial trial(2);
  learn_window(trial, result_with({200, 100}));
  EXPECT_EQ(trial.choice(), ruled);
  EXPECT_EQ(trial.state(), TrialState::trying) << "the second window follows at once";
  learn_window(trial, result_with({100, 100}));
  EXPECT_EQ(trial.state(), TrialState::settled);
  learn_window(trial, result_with({200, 100}));
  EXPECT_EQ(trial.choice(), ruled) << "it had lost in between";
  learn_window(trial, result_with({200, 100}));
  EXPECT_EQ(trial.choice(), by_mpi);
  EXPECT_EQ(trial.state(), TrialState::settled);
}

TEST(Trial, hands_back_on_the_same_proof_only) {
  PlayedTrial played([](uint8_t candidate, uint64_t call) {
    return (candidate == by_mpi) == (call < 600) ? 100 : 200;
  });
  played.calls(600);
  EXPECT_EQ(played.trial.choice(), by_mpi);
  const size_t windows = played.began.size();
  while (played.trial.choice() == by_mpi && played.made < 5000) (void)played.call();
  EXPECT_EQ(played.trial.choice(), ruled);
  EXPECT_EQ(played.changes, 2U);
  EXPECT_GE(played.began.size(), windows + 2);
  Trial trial(2);
  for (int i = 0; i < 2; ++i) learn_window(trial, result_with({200, 100}));
  for (int i = 0; i < 50; ++i) learn_window(trial, result_with({100, 114}));
  EXPECT_EQ(trial.choice(), by_mpi) << "14% are not enough to go back";
  for (int i = 0; i < 2; ++i) learn_window(trial, result_with({100, 116}));
  EXPECT_EQ(trial.choice(), ruled);
}

TEST(Trial, asks_for_a_margin) {
  for (const double slower : {0.5, 1.0, 1.14}) {
    PlayedTrial played(fixed_times(1000 * slower, 1000));
    played.calls(100000);
    EXPECT_EQ(played.trial.choice(), ruled) << slower;
    EXPECT_EQ(played.changes, 0U) << slower;
  }
  PlayedTrial played(fixed_times(1160, 1000));
  played.calls(100);
  EXPECT_EQ(played.trial.choice(), by_mpi);
  // Between bounds: the worst of one against the best of the other.
  for (const double best : {1149, 1150}) {
    Trial trial(2);
    Trial::Result result;
    result.by_candidate[ruled] = {best, 5000};
    result.by_candidate[by_mpi] = {10, 1000};
    for (int i = 0; i < 2; ++i) learn_window(trial, result);
    EXPECT_EQ(trial.choice() == by_mpi, best >= 1150) << best;
  }
}

TEST(Trial, finds_the_fastest_of_several) {
  Trial trial(4);
  learn_window(trial, result_with({400, 200, 300, 0}));
  learn_window(trial, result_with({400, 300, 200, 0}));
  EXPECT_EQ(trial.choice(), ruled) << "two leaders";
  learn_window(trial, result_with({400, 200, 300, 0}));
  EXPECT_EQ(trial.choice(), ruled);
  learn_window(trial, result_with({400, 200, 300, 500}));
  EXPECT_EQ(trial.choice(), by_mpi);
  for (int i = 0; i < 2; ++i) learn_window(trial, result_with({400, 200, 300, 100}));
  EXPECT_EQ(trial.choice(), 3);
}

TEST(Trial, settles_in_less_than_200_calls) {
  for (const double factor : {0.1, 0.5, 1.0, 1.2, 2.0, 10.0}) {
    PlayedTrial played(fixed_times(1000 * factor, 1000));
    while (played.trial.state() != TrialState::settled && played.made < 300) (void)played.call();
    EXPECT_LT(played.made, 200U);
    EXPECT_EQ(played.trial.choice(), factor > Trial::margin ? by_mpi : ruled);
  }
}

// CallTimes that scatter by a tenth, and some calls that another program holds up.
TEST(Trial, does_not_flap_between_equal_candidates) {
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

TEST(Trial, what_is_unknown_decides_nothing) {
  for (const auto& unknown : {result_with({0, 100}), result_with({200, 0}), result_with({0, 0})}) {
    Trial trial(2);
    for (int i = 0; i < 20; ++i) {
      learn_window(trial, unknown);
      EXPECT_EQ(trial.choice(), ruled);
      EXPECT_EQ(trial.state(), TrialState::settled);
      learn_window(trial, result_with({200, 100}));
      EXPECT_EQ(trial.choice(), ruled) << "only one window of two was known";
    }
  }
}

TEST(Trial, lets_gaps_grow_while_nothing_changes) {
  PlayedTrial played(fixed_times(1000, 1000));
  played.calls(7000);
  std::vector<uint64_t> expected{0, 64};
  for (const uint32_t gap : {256U, 512U, 1024U, 1024U, 1024U, 1024U, 1024U}) {
    expected.push_back(expected.back() + 8 + gap);
  }
  EXPECT_EQ(played.began, expected);
}

TEST(Trial, lets_gaps_grow_with_what_windows_cost) {
  Trial::Result costly = result_with({100, 100});
  costly.overhead = 5000;  // of 50 calls
  Trial trial(2);
  learn_window(trial, costly);
  EXPECT_EQ(trial.uneventful(), 5000U);
  Trial slow(2);
  learn_window(slow, result_with({100, 2100}));  // 4 calls, each 20 longer
  EXPECT_EQ(slow.uneventful(), 8000U);
  Trial absurd(2);
  learn_window(absurd, result_with({1e-9, 1e300}));
  EXPECT_EQ(absurd.uneventful(), Trial::most_gap);
}

TEST(Trial, loses_a_hundredth_of_the_time) {
  for (const double factor : {0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.3, 1.5, 2.0}) {
    PlayedTrial played(fixed_times(1000 * factor, 1000));
    played.overhead = 2000;
    const double best = 1000 * (factor > Trial::margin ? 1 : factor);
    played.calls(20000);
    // Until MPI takes over, the slower way is in force; that is no cost of trials.
    const double before = factor > Trial::margin ? (64 + 8) * 1000 * (factor - 1) : 0;
    EXPECT_LE(played.lost - before, 20000 * best * 1.01) << factor;
    EXPECT_GT(played.began.size(), 5U);
  }
}

// A few calls take very long, as where ranks spin on processors that others use.
TEST(Trial, hands_nothing_over_that_is_slower_on_average) {
  Trial trial(2);
  Trial::Result result = result_with({2000, 1000});
  result.mean = {2000, 2001};
  learn_window(trial, result);
  EXPECT_EQ(trial.state(), TrialState::settled);
  result.mean = {2000, 102'000};  // 4 such calls cost as much as 200 of the usual ones
  learn_window(trial, result);
  EXPECT_EQ(trial.uneventful(), 20'000U);
  result.mean = {2000, 2000};
  learn_window(trial, result);
  learn_window(trial, result);
  EXPECT_EQ(trial.choice(), by_mpi);
}

TEST(Trial, tries_again_at_once_when_times_have_shifted) {
  for (const double shift : {0.4, 2.5}) {
    PlayedTrial played([=](uint8_t, uint64_t call) { return call < 3000 ? 1000 : 1000 * shift; });
    played.calls(8000);
    const auto first = std::ranges::upper_bound(played.began, 3000U);
    ASSERT_GT(played.began.end() - first, 3);
    EXPECT_EQ(first[1] - first[0], 8U) << "at once";
    EXPECT_EQ(first[2] - first[1], 8U + Trial::first_gap) << "once, and soon again";
    EXPECT_EQ(first[3] - first[2], 8U + 2 * Trial::first_gap);
  }
  PlayedTrial busy([](uint8_t, uint64_t call) { return call / 8 % 2 == 0 ? 1000 : 5000; });
  busy.calls(20000);
  EXPECT_EQ(busy.changes, 0U);
  EXPECT_LE(busy.began.size(), 20000 / Trial::first_gap * 2) << "two windows a gap at most";
}

TEST(Trial, notices_a_load_that_moves) {
  std::mt19937_64 random(43);
  for (int round = 0; round < 300; ++round) {
    const uint64_t moved = 100 + random() % 20000;
    const bool is_first = random() % 2 == 0;
    PlayedTrial played([=](uint8_t candidate, uint64_t call) {
      return ((candidate == by_mpi) == is_first) == (call < moved) ? 1000 : 3000;
    });
    played.calls(moved);
    EXPECT_EQ(played.trial.choice(), is_first ? by_mpi : ruled) << moved;
    played.calls(1100);
    EXPECT_EQ(played.trial.choice(), is_first ? ruled : by_mpi) << moved;
  }
}

TEST(Trial, leaves_calls_of_other_sizes_out_of_a_window) {
  Trial trial(2);
  fill_window(trial);
  trial.learn(result_with({200, 100}));  // the next window begins with the next call
  EXPECT_EQ(trial.next(800).place, 0);
  for (const size_t stray : {699U, 901U, 1600U, 0U}) {
    const Trial::Next next = trial.next(stray);
    EXPECT_FALSE(next.is_timed) << stray;
    EXPECT_EQ(next.candidate, ruled);
  }
  uint8_t place = 1;
  for (const size_t alike : {700U, 900U, 800U}) {
    const Trial::Next next = trial.next(alike);
    EXPECT_TRUE(next.is_timed) << alike;
    EXPECT_EQ(next.place, place);
    EXPECT_EQ(next.candidate, trial.candidate_at(place++));
  }
}

TEST(Trial, begins_with_another_size_after_64_strays) {
  Trial trial(2);
  fill_window(trial);
  trial.learn(result_with({200, 100}));
  EXPECT_TRUE(trial.next(800).is_timed);
  EXPECT_TRUE(trial.next(800).is_timed);
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(trial.next(600).is_timed);
  for (uint8_t place = 0; place < 8; ++place) {
    ASSERT_EQ(trial.due(), TrialDue::nothing);
    const Trial::Next next = trial.next(600);
    EXPECT_TRUE(next.is_timed);
    EXPECT_EQ(next.place, place);
  }
  EXPECT_EQ(trial.due(), TrialDue::window);
}

TEST(Trial, leaves_windows_that_are_not_complete) {
  for (const uint32_t calls : {1U, 5U, 8U}) {
    Trial trial(2);
    fill_window(trial);
    trial.learn(result_with({200, 100}));
    for (uint32_t i = 0; i < calls; ++i) (void)trial.next(usual_bytes);
    trial.leave_window();
    for (uint8_t place = 0; place < 8; ++place) {
      ASSERT_EQ(trial.due(), TrialDue::nothing);
      EXPECT_EQ(trial.next(usual_bytes).place, place);
    }
    trial.learn(result_with({200, 100}));
    EXPECT_EQ(trial.choice(), by_mpi) << "the window before it counts";
    const uint32_t gap = trial.uneventful();
    trial.skip(10);
    trial.leave_window();
    EXPECT_EQ(trial.uneventful(), gap - 10) << "only windows are left";
  }
}

TEST(Trial, ends_when_it_is_given_up) {
  Trial trial(2);
  for (int call = 1; call <= 7; ++call) (void)trial.next(usual_bytes);
  trial.give_up();
  for (uint32_t call = 0; call < 100000; ++call) {
    ASSERT_EQ(trial.due(), TrialDue::nothing);
    const Trial::Next next = trial.next(usual_bytes);
    ASSERT_FALSE(next.is_timed);
    ASSERT_EQ(next.candidate, ruled);
  }
  trial.skip(trial.uneventful());
  trial.leave_window();
  EXPECT_EQ(trial.state(), TrialState::closed);
  EXPECT_EQ(trial.due(), TrialDue::nothing);
}

// Random, but always the same of a number. (Mixes as splitmix64 does.)
uint64_t scramble(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

// What a program and its machine do in a run; equal on all ranks.
struct TrialHistory {
  uint64_t seed;
  uint8_t candidates;
  bool is_long;  // calls are
  uint32_t calls;

  size_t bytes_of(uint64_t call) const {
    return seed % 3 == 0 ? usual_bytes : 512 + scramble(seed * 1000000 + call) % 512;
  }
  bool leaves_at(uint64_t call) const { return scramble(~(seed * 1000000 + call)) % 500 == 0; }
  // Also absurd ones.
  Trial::Result result_of_window(uint64_t number) const {
    std::mt19937_64 random(seed * 15485863 + number / 2);
    Trial::Result result;
    for (Trial::Bounds& bounds : result.by_candidate) {
      switch (random() % 8) {
        case 0:
          break;
        case 1:
          bounds = {0, 0};
          break;
        case 2:
          bounds = {0, std::numeric_limits<double>::infinity()};
          break;
        case 3:
          bounds = {1e300, 1e300};
          break;
        default:
          bounds.low = 1000 + static_cast<double>(random() % 4) * 500;
          bounds.high = bounds.low + static_cast<double>(random() % 100);
      }
    }
    result.overhead = static_cast<double>(random() % 3 * 1000);
    return result;
  }
};

struct TrialDecision {
  uint8_t candidate;
  bool is_timed;
  uint8_t place;
  bool operator==(const TrialDecision&) const = default;
};

// A rank, which may use leases as it likes.
class RankOfHistory {
 public:
  RankOfHistory(const TrialHistory& history, uint64_t habits)
      : history_(history), random_(habits), has_leases_(habits != 0) {}

  std::vector<TrialDecision> play() {
    std::vector<TrialDecision> decisions;
    for (uint64_t call = 0; call < history_.calls; ++call) decisions.push_back(make(call));
    return decisions;
  }

 private:
  TrialDecision make(uint64_t call) {
    if (history_.leaves_at(call)) of_.trial.leave_window();
    if (has_leases_) {
      CallLease& cache = caches_[random_() % caches_.size()];
      if (random_() % 50 == 0) cache.end();
      if (of_.lease == &cache && cache.take()) return {of_.trial.choice(), false, 0};
    }
    if (of_.lease) of_.lease->end();
    if (of_.trial.due() == TrialDue::time_spent) {
      of_.trial.learn_time_spent(history_.is_long ? Trial::long_enough
                                                  : std::chrono::nanoseconds(0));
    }
    if (of_.trial.due() == TrialDue::window) of_.trial.learn(history_.result_of_window(windows_++));
    const Trial::Next next = of_.trial.next(history_.bytes_of(call));
    const uint8_t place = next.is_timed ? next.place : uint8_t{0};
    if (has_leases_ && random_() % 2 == 0) caches_[random_() % caches_.size()].begin(&of_);
    return {next.candidate, next.is_timed, place};
  }

  const TrialHistory& history_;
  std::mt19937_64 random_;
  const bool has_leases_;
  CallClass of_{0, Trial(history_.candidates)};
  std::array<CallLease, 2> caches_;
  uint64_t windows_ = 0;
};

TEST(Trial, ranks_never_differ_whoever_has_leases) {
  uint64_t timed = 0, by_others = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const TrialHistory history{seed, static_cast<uint8_t>(2 + seed % 3), seed % 5 == 0, 3000};
    const std::vector<TrialDecision> expected = RankOfHistory(history, 0).play();
    for (uint64_t rank = 1; rank <= 2; ++rank) {
      const std::vector<TrialDecision> decisions = RankOfHistory(history, seed * 10 + rank).play();
      ASSERT_TRUE(decisions == expected) << "seed " << seed << ", rank " << rank;
    }
    for (const TrialDecision& each : expected) {
      if (each.is_timed) ++timed;
      if (!each.is_timed && each.candidate != ruled) ++by_others;
    }
  }
  EXPECT_GT(timed, 50000U);
  EXPECT_GT(by_others, 50000U) << "others win";
}

// Plays calls of which some take five times as long, depending on their place in a period, by
// candidates that are equally fast. Returns how often the choice changed.
uint32_t changes_with_period(uint32_t period, uint32_t slow, uint32_t start, uint8_t choice) {
  PlayedTrial played([=](uint8_t candidate, uint64_t call) -> double {
    if (call < 100) return candidate == choice ? 1000 : 3000;  // makes it the choice
    return (slow >> (call + start) % period & 1) != 0 ? 5000 : 1000;
  });
  played.calls(100);
  EXPECT_EQ(played.trial.choice(), choice);
  const uint32_t before = played.changes;
  played.calls(6000);
  return played.changes - before;
}

TEST(PeriodicProgram, has_one_call_that_takes_longer) {
  for (uint32_t period = 2; period <= 16; ++period) {
    for (uint32_t start = 0; start < period; ++start) {
      for (const uint8_t choice : {ruled, by_mpi}) {
        EXPECT_EQ(changes_with_period(period, 1, start, choice), 0U) << period << " " << start;
      }
    }
  }
}

// (With five and more calls in a period, there are patterns that two windows in a row take for a
// difference.)
TEST(PeriodicProgram, has_several_calls_that_take_longer) {
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
