// SPDX-License-Identifier: BSD-3-Clause
//
// The state machine of trials.
#include "src/engine/trial.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/engine/trials.h"
#include "tests/unit/engine/played_trial.h"

namespace sluice {
namespace {

using TrialState = Trial::State;
using TrialDue = Trial::Due;

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

// Makes the calls of a window from `first` on, and expects its turns.
void expect_window(Trial& trial, size_t bytes = usual_bytes, uint32_t first = 0) {
  for (uint32_t call = first; call < trial.window_length(); ++call) {
    ASSERT_EQ(trial.due(), TrialDue::nothing);
    EXPECT_EQ(trial.uneventful(), 0U);
    const Trial::Next next = trial.next(bytes);
    EXPECT_EQ(trial.state(), TrialState::trying);
    EXPECT_TRUE(next.takes_part);
    EXPECT_EQ(next.is_timed, call > 0 && call % 2 == 0) << call;
    const auto place = static_cast<uint8_t>((call - 1) / 2);
    EXPECT_EQ(next.candidate, call == 0 ? trial.choice() : trial.candidate_at(place)) << call;
    if (next.is_timed) {
      EXPECT_EQ(next.place, place);
    }
  }
  EXPECT_EQ(trial.due(), TrialDue::window);
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
  ASSERT_EQ(trial.due(), TrialDue::nothing);
  EXPECT_TRUE(trial.next(usual_bytes).takes_part);
  expect_window(trial, usual_bytes, 1);
}

TEST(Trial, begins_at_once_where_calls_are_long) {
  Trial trial(2);
  for (int call = 1; call <= 7; ++call) (void)trial.next(usual_bytes);
  trial.learn_time_spent(Trial::long_enough);
  EXPECT_EQ(trial.state(), TrialState::trying);
  expect_window(trial);
}

// Capitals: the calls that count.
std::string play_window(Trial& trial) {
  std::string calls;
  while (trial.due() != TrialDue::window) {
    const Trial::Next next = trial.next(usual_bytes);
    calls += static_cast<char>((next.is_timed ? 'A' : 'a') + next.candidate);
  }
  return calls;
}

TEST(Trial, lets_a_call_warm_before_each_that_counts) {
  Trial trial(2);
  fill_window(trial);
  trial.learn(result_with({200, 100}));
  EXPECT_EQ(play_window(trial), "aaAbBbBaAbBaAaAbB") << "the order of Thue and Morse";
  trial.learn(result_with({200, 100}));
  ASSERT_EQ(trial.choice(), by_mpi);
  trial.skip(trial.uneventful());
  EXPECT_EQ(play_window(trial), "baAbBbBaAbBaAaAbB") << "the choice comes before it";
  Trial of_four(4);
  fill_window(of_four);
  of_four.learn(result_with({200, 100, 200, 200}));
  EXPECT_EQ(play_window(of_four), "aaAbBcCdDdDcCbBaAbBcCdDaAcCbBaAdD");
}

TEST(Trial, gives_each_candidate_as_many_turns) {
  std::vector<int> order;
  for (uint32_t place = 0; place < 8; ++place) order.push_back(Trial(2).candidate_at(place));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 1, 0, 1, 0, 0, 1})) << "Thue and Morse";
  for (const uint8_t candidates : {uint8_t{2}, uint8_t{3}, uint8_t{4}}) {
    const Trial trial(candidates);
    EXPECT_EQ(trial.sample_count(), 4U * candidates);
    EXPECT_EQ(trial.window_length(), 8U * candidates + 1);
    std::array<uint32_t, Trial::most_candidates> turns{};
    for (uint32_t place = 0; place < trial.sample_count(); ++place) {
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
  std::vector<uint64_t> expected{0, 66};
  for (const uint32_t gap : {256U, 512U, 1024U, 1024U, 1024U, 1024U, 1024U}) {
    expected.push_back(expected.back() + 17 + gap);
  }
  EXPECT_EQ(played.began, expected);
}

TEST(Trial, lets_gaps_grow_with_what_windows_cost) {
  Trial::Result costly = result_with({100, 100});
  costly.overhead = 4500;  // of 45 calls, which are 0.9% of 5000
  Trial trial(2);
  learn_window(trial, costly);
  EXPECT_EQ(trial.uneventful(), 5000U);
  Trial slow(2);
  learn_window(slow, result_with({100, 2100}));  // 8 calls, each 20 longer
  EXPECT_EQ(slow.uneventful(), 17777U);
  Trial absurd(2);
  learn_window(absurd, result_with({1e-9, 1e300}));
  EXPECT_EQ(absurd.uneventful(), Trial::most_gap);
}

TEST(Trial, looks_at_a_proof_again_before_it_holds) {
  const Trial::Result slow = result_with({4'000'000, 10'000});
  Trial trial(2);
  for (int i = 0; i < 2; ++i) learn_window(trial, slow);
  EXPECT_EQ(trial.choice(), by_mpi);
  EXPECT_EQ(trial.uneventful(), 5000U) << "50 ms";
  learn_window(trial, slow);
  EXPECT_GT(trial.uneventful(), 300'000U) << "calls that make up for eight of the others";
  Trial of_long(2);
  learn_window(of_long, result_with({1'000'000, 100'000'000}));
  EXPECT_EQ(of_long.uneventful(), Trial::usual_gap) << "as soon as where windows cost little";
  learn_window(of_long, result_with({1'000'000, 100'000'000}));
  EXPECT_GT(of_long.uneventful(), 80'000U);
}

// A few calls take very long, as where ranks spin on processors that others use.
TEST(Trial, hands_nothing_over_that_is_slower_on_average) {
  Trial trial(2);
  Trial::Result result = result_with({2000, 1000});
  result.mean = {2000, 2001};
  learn_window(trial, result);
  EXPECT_EQ(trial.state(), TrialState::settled);
  result.mean = {2000, 102'000};  // 8 such calls cost as much as 400 of the usual ones
  learn_window(trial, result);
  EXPECT_EQ(trial.uneventful(), 44'444U);
  result.mean = {2000, 2000};
  learn_window(trial, result);
  learn_window(trial, result);
  EXPECT_EQ(trial.choice(), by_mpi);
}

TEST(Trial, leaves_calls_of_other_sizes_out_of_a_window) {
  Trial trial(2);
  fill_window(trial);
  trial.learn(result_with({200, 100}));  // the next window begins with the next call
  EXPECT_TRUE(trial.next(800).takes_part);
  for (const size_t stray : {699U, 901U, 1600U, 0U}) {
    const Trial::Next next = trial.next(stray);
    EXPECT_FALSE(next.takes_part) << stray;
    EXPECT_EQ(next.candidate, ruled);
  }
  for (const size_t alike : {700U, 900U}) EXPECT_TRUE(trial.next(alike).takes_part) << alike;
  expect_window(trial, 800, 3);
}

TEST(Trial, begins_with_another_size_after_64_strays) {
  Trial trial(2);
  fill_window(trial);
  trial.learn(result_with({200, 100}));
  EXPECT_TRUE(trial.next(800).takes_part);
  EXPECT_TRUE(trial.next(800).takes_part);
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(trial.next(600).takes_part);
  expect_window(trial, 600);
}

// Makes the calls before the first window, and asks what is due then.
TrialDue due_before_trying(Trial& trial) {
  for (int call = 1; call <= 64; ++call) {
    if (trial.due() == TrialDue::time_spent) trial.learn_time_spent(std::chrono::nanoseconds(0));
    EXPECT_FALSE(trial.next(usual_bytes).candidate != ruled);
  }
  return trial.due();
}

TEST(Trial, holds_no_window_without_memory_on_all_ranks) {
  Trial trial(2, Trial::Needs::memory);
  ASSERT_EQ(due_before_trying(trial), TrialDue::memory);
  for (const uint32_t gap : {512U, 1024U, 1024U}) {
    ASSERT_EQ(trial.due(), TrialDue::memory);
    trial.learn_memory(false, usual_bytes);
    EXPECT_EQ(trial.state(), TrialState::settled);
    EXPECT_FALSE(trial.holds_memory());
    ASSERT_EQ(trial.uneventful(), gap);
    for (uint32_t call = 0; call < gap; ++call) {
      ASSERT_EQ(trial.due(), TrialDue::nothing);
      ASSERT_FALSE(trial.next(usual_bytes).takes_part);
    }
  }
  EXPECT_EQ(trial.due(), TrialDue::memory);
}

TEST(Trial, keeps_the_memory_from_window_to_window_until_it_is_settled) {
  Trial trial(2, Trial::Needs::memory);
  ASSERT_EQ(due_before_trying(trial), TrialDue::memory);
  trial.learn_memory(true, usual_bytes);
  for (const bool is_last : {false, true}) {
    expect_window(trial);
    EXPECT_TRUE(trial.holds_memory());
    trial.learn(result_with({200, 100}));
    EXPECT_EQ(trial.holds_memory(), !is_last);
  }
  EXPECT_EQ(trial.choice(), by_mpi);
}

// The memory is as long as the window's calls, whatever the class may have.
TEST(Trial, gets_memory_anew_for_longer_calls) {
  Trial trial(2, Trial::Needs::memory);
  ASSERT_EQ(due_before_trying(trial), TrialDue::memory);
  EXPECT_EQ(trial.longest_of_window(800), 900);
  trial.learn_memory(true, 800);
  (void)trial.next(800);
  EXPECT_EQ(trial.longest_of_window(1000), 900) << "1000 is none of the window's";
  for (uint32_t call = 0; call < Trial::most_strays; ++call) {
    ASSERT_EQ(trial.due(), TrialDue::nothing);
    ASSERT_FALSE(trial.next(1000).takes_part);
  }
  EXPECT_FALSE(trial.next(1000).is_timed) << "the first one of a window, which needs none";
  ASSERT_EQ(trial.due(), TrialDue::memory);
  EXPECT_EQ(trial.longest_of_window(800), 1125);
  trial.learn_memory(true, 800);
  expect_window(trial, 1000, 1);
  trial.learn(result_with({200, 100}));
  EXPECT_TRUE(trial.next(1000).takes_part) << "another window, as long";
  EXPECT_EQ(trial.due(), TrialDue::nothing);
}

TEST(Trial, a_window_goes_on_once_the_ranks_have_memory_again) {
  Trial trial(2, Trial::Needs::memory);
  ASSERT_EQ(due_before_trying(trial), TrialDue::memory);
  trial.learn_memory(true, usual_bytes);
  for (int call = 0; call < 5; ++call) (void)trial.next(usual_bytes);
  trial.lose_memory();
  ASSERT_EQ(trial.due(), TrialDue::memory);
  trial.learn_memory(true, usual_bytes);
  expect_window(trial, usual_bytes, 5);
  trial.lose_memory();
  EXPECT_EQ(trial.due(), TrialDue::window) << "which needs none any more";
}

TEST(Trial, ends_when_it_is_given_up) {
  Trial trial(2);
  for (int call = 1; call <= 7; ++call) (void)trial.next(usual_bytes);
  trial.close();
  for (uint32_t call = 0; call < 100000; ++call) {
    ASSERT_EQ(trial.due(), TrialDue::nothing);
    const Trial::Next next = trial.next(usual_bytes);
    ASSERT_FALSE(next.is_timed);
    ASSERT_EQ(next.candidate, ruled);
  }
  trial.skip(trial.uneventful());
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
  Trial::Needs needs() const { return seed % 7 < 3 ? Trial::Needs::memory : Trial::Needs::nothing; }
  bool leaves_at(uint64_t call) const { return scramble(~(seed * 1000000 + call)) % 500 == 0; }
  bool has_memory_at(uint64_t call) const { return scramble(seed * 7000000 + call) % 4 != 0; }
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
    if (history_.leaves_at(call)) of_.trial.lose_memory();
    if (has_leases_) {
      CallLease& cache = caches_[random_() % caches_.size()];
      if (random_() % 50 == 0) cache.end();
      if (of_.lease == &cache && cache.use()) return {of_.trial.choice(), false, 0};
    }
    if (of_.lease) of_.lease->end();
    if (of_.trial.due() == TrialDue::time_spent) {
      of_.trial.learn_time_spent(history_.is_long ? Trial::long_enough
                                                  : std::chrono::nanoseconds(0));
    }
    if (of_.trial.due() == TrialDue::window) of_.trial.learn(history_.result_of_window(windows_++));
    const size_t bytes = history_.bytes_of(call);
    if (of_.trial.due() == TrialDue::memory) {
      of_.trial.learn_memory(history_.has_memory_at(call), bytes);
    }
    const Trial::Next next = of_.trial.next(bytes);
    const uint8_t place = next.is_timed ? next.place : uint8_t{0};
    if (has_leases_ && random_() % 2 == 0) caches_[random_() % caches_.size()].begin(&of_);
    return {next.candidate, next.is_timed, place};
  }

  const TrialHistory& history_;
  std::mt19937_64 random_;
  const bool has_leases_;
  CallClass of_{0, Trial(history_.candidates, history_.needs())};
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

}  // namespace
}  // namespace sluice
