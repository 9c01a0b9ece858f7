// SPDX-License-Identifier: BSD-3-Clause
//
// How long calls took a team, from what its ranks have seen on their clocks.
#include "src/engine/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/unit/engine/played_trial.h"

namespace sluice {
namespace {

constexpr int64_t second = 1'000'000'000;

Trial::Bounds time_on_one_clock(std::initializer_list<Sample> samples) {
  return time_of_team(std::vector(samples), {}, 0);
}

void expect_bounds(const Trial::Bounds& bounds, double low, double high) {
  EXPECT_DOUBLE_EQ(bounds.low, low);
  EXPECT_DOUBLE_EQ(bounds.high, high);
}

TEST(TimeOfTeam, is_from_the_last_entry_to_the_last_exit) {
  expect_bounds(time_on_one_clock({{1000, 50}}), 50, 50);
  expect_bounds(time_on_one_clock({{1000, 900}, {1800, 150}, {1700, 230}}), 150, 150);
  // The root of a broadcast leaves before the others come.
  expect_bounds(time_on_one_clock({{1000, 10}, {5000, 70}, {4000, 1100}}), 100, 100);
  // The last to come leaves first.
  expect_bounds(time_on_one_clock({{1000, 500}, {1400, 20}}), 100, 100);
  // Far from zero, and across it.
  const int64_t late = int64_t{1} << 60;
  expect_bounds(time_of_team(std::vector<Sample>{{late, 500}, {late + 400, 120}}, {}, late), 120,
                120);
}

TEST(TimeOfTeam, is_unknown_if_a_rank_has_no_sample) {
  EXPECT_FALSE(time_on_one_clock({{1000, 500}, {1400, Sample::unknown}}).is_known());
  EXPECT_FALSE(time_on_one_clock({Sample{}, {1400, 500}}).is_known());
}

TEST(TimeOfTeam, is_an_interval_between_hosts) {
  // Rank 1's clock is ahead by 10000, which is known up to 30.
  const std::vector<ClockOffset> clocks{{0, 0}, {10000, 30}};
  const std::vector<Sample> samples{{1000, 900}, {11500, 300}};
  const Trial::Bounds bounds = time_of_team(samples, clocks, 1500);
  EXPECT_NEAR(bounds.low, 400 - 60, 0.2);  // (half a microsecond's drift)
  EXPECT_NEAR(bounds.high, 400 + 60, 0.2);
  // Cut with the shortest and the longest duration.
  const std::vector<ClockOffset> poor{{0, 0}, {10000, 5000}};
  expect_bounds(time_of_team(samples, poor, 1500), 300, 900);
  // A second before, clocks may have drifted by 100 microseconds.
  const std::vector<Sample> longer{{1000, 900'000}, {501'000, 600'000}};
  const std::vector<ClockOffset> exact{{0, 0}, {0, 0}};
  const Trial::Bounds old = time_of_team(longer, exact, second);
  EXPECT_NEAR(old.low, 600'000, 1);
  EXPECT_NEAR(old.high, 600'000 + 200'000, 300);
}

// Ranks of several hosts that make exchanges and calls, with clocks that differ and drift.
class SimulatedHosts {
 public:
  SimulatedHosts(uint64_t seed, size_t ranks) : random_(seed) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      ahead_.push_back(rank == 0 ? 0 : static_cast<double>(below(100 * second)) - 50e9);
      rate_.push_back(rank == 0 ? 1 : 1 + (static_cast<double>(below(100)) - 50) * 1e-6);
    }
  }

  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  size_t size() const { return ahead_.size(); }
  // On a rank's clock.
  int64_t read(size_t rank, int64_t time) const {
    return static_cast<int64_t>(ahead_[rank] + static_cast<double>(time) * rate_[rank]);
  }
  double ahead(size_t rank, int64_t time) const {
    return static_cast<double>(read(rank, time) - read(0, time));
  }
  // Ranks enter within `apart`; nobody leaves before all have entered.
  std::vector<ExchangeTimes> exchange(int64_t* time, int64_t apart) {
    std::vector<ExchangeTimes> times(size());
    std::vector<int64_t> entries(size());
    for (int64_t& entry : entries) entry = *time + below(apart);
    const int64_t all_came = *std::ranges::max_element(entries);
    for (size_t rank = 0; rank < size(); ++rank) {
      const int64_t exit = all_came + 1000 + below(apart);
      times[rank] = {read(rank, entries[rank]), read(rank, exit)};
      *time = std::max(*time, exit);
    }
    return times;
  }
  // A call; returns how long it took the team.
  double call(int64_t time, std::vector<Sample>* samples) {
    int64_t last_entry = 0, last_exit = 0;
    for (size_t rank = 0; rank < size(); ++rank) {
      const int64_t entry = time + below(50'000), exit = entry + 1000 + below(80'000);
      samples->push_back(
          {read(rank, entry), static_cast<float>(read(rank, exit) - read(rank, entry)), 0});
      last_entry = std::max(last_entry, entry);
      last_exit = std::max(last_exit, exit);
    }
    return static_cast<double>(last_exit - last_entry);
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> ahead_, rate_;
};

std::vector<ClockOffset> clock_offsets(std::span<const std::vector<ExchangeTimes>> times) {
  std::vector<ClockOffset> offsets(times.front().size());
  find_clock_offsets(times, offsets);
  return offsets;
}

TEST(ClockOffsets, contain_the_true_ones) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimulatedHosts hosts(seed, 2 + seed % 6);
    int64_t time = 1000 * second;
    const int64_t before = time;
    std::vector<std::vector<ExchangeTimes>> exchanges;
    exchanges.push_back(hosts.exchange(&time, 20'000));
    const std::vector<ClockOffset> one = clock_offsets(exchanges);
    exchanges.push_back(hosts.exchange(&time, 20'000));
    const std::vector<ClockOffset> both = clock_offsets(exchanges);
    ASSERT_EQ(both.size(), hosts.size());
    EXPECT_EQ(both[0].ahead, 0);
    EXPECT_EQ(both[0].error, 0);
    for (size_t rank = 1; rank < hosts.size(); ++rank) {
      // (The clocks drift by 50 ppm meanwhile.)
      const double drifted = static_cast<double>(time - before) * 1e-4 + 2;
      EXPECT_LE(std::abs(both[rank].ahead - hosts.ahead(rank, time)), both[rank].error + drifted);
      EXPECT_LE(both[rank].error, one[rank].error);
      EXPECT_LE(both[rank].error, 45'000);
    }
  }
}

// Seconds before the exchanges too.
TEST(ClockOffsets, give_bounds_that_contain_the_teams_time) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimulatedHosts hosts(seed, 2 + seed % 6);
    int64_t time = 1000 * second;
    std::vector<std::vector<Sample>> calls(20);
    std::vector<double> took;
    for (auto& samples : calls) {
      took.push_back(hosts.call(time, &samples));
      time += 200'000 + hosts.below(seed % 2 == 0 ? 10'000 : second);
    }
    std::vector<std::vector<ExchangeTimes>> exchanges;
    for (int i = 0; i < 2; ++i) exchanges.push_back(hosts.exchange(&time, 20'000));
    const int64_t reference = exchanges[1][0].exit;
    const std::vector<ClockOffset> clocks = clock_offsets(exchanges);
    for (size_t i = 0; i < calls.size(); ++i) {
      const Trial::Bounds bounds = time_of_team(calls[i], clocks, reference);
      ASSERT_TRUE(bounds.is_known()) << seed;
      EXPECT_LE(bounds.low, took[i] + 10) << seed;
      EXPECT_GE(bounds.high, took[i] - 10) << seed;
    }
  }
}

// Bounds from before and after a jump contradict each other. Then only durations count.
TEST(ClockOffsets, are_not_known_if_a_clock_jumps_between_exchanges) {
  for (const int64_t jump : {int64_t{300}, int64_t{-300}, second, -second}) {
    const std::vector<std::vector<ExchangeTimes>> exchanges{
        {{1000, 1100}, {1020, 1120}}, {{2000, 2100}, {2020 + jump, 2120 + jump}}};
    const std::vector<ClockOffset> clocks = clock_offsets(exchanges);
    const std::vector<Sample> before{{0, 900}, {800, 100}}, after{{0, 900}, {800 + jump, 100}};
    expect_bounds(time_of_team(before, clocks, 2100), 100, 900);
    expect_bounds(time_of_team(after, clocks, 2100), 100, 900);
  }
}

// A sample for each place of a window on each of two ranks: the first enters 1000 earlier.
struct TwoRanksWindow {
  explicit TwoRanksWindow(const Trial& of)
      : trial(of), early(of.sample_count()), late(of.sample_count()) {
    for (uint32_t place = 0; place < of.sample_count(); ++place) set(place, 100);
  }
  void set(uint32_t place, float time) {
    early[place] = {place * second, 1000 + time, early[place].weight};
    late[place] = {place * second + 1000, time, late[place].weight};
  }
  // The places of a candidate.
  std::vector<uint32_t> places_of(uint8_t candidate) const {
    std::vector<uint32_t> places;
    for (uint32_t place = 0; place < trial.sample_count(); ++place) {
      if (trial.candidate_at(place) == candidate) places.push_back(place);
    }
    return places;
  }
  Trial::Result result() const {
    const std::vector<std::span<const Sample>> windows{early, late};
    return result_of(trial, windows, {}, early[0].entry);
  }

  const Trial& trial;
  std::vector<Sample> early, late;
};

TEST(ResultOf, is_made_of_the_two_in_the_middle) {
  for (const uint8_t candidates : {uint8_t{2}, uint8_t{3}, uint8_t{4}}) {
    const Trial trial(candidates);
    TwoRanksWindow window(trial);
    for (uint8_t candidate = 0; candidate < candidates; ++candidate) {
      const std::vector<uint32_t> places = window.places_of(candidate);
      ASSERT_EQ(places.size(), 4U);
      const float offset = candidate;
      const float times[] = {90, 4e9F, 110 + offset, 130 + offset};
      for (size_t i = 0; i < 4; ++i) window.set(places[i], times[(i + candidate) % 4]);
    }
    const Trial::Result result = window.result();
    for (uint8_t i = 0; i < Trial::most_candidates; ++i) {
      ASSERT_EQ(result.by_candidate[i].is_known(), i < candidates);
      if (i < candidates) expect_bounds(result.by_candidate[i], 110 + i, 130 + i);
    }
    EXPECT_FLOAT_EQ(static_cast<float>(result.mean[0]), (90 + 4e9F + 110 + 130) / 4);
    EXPECT_EQ(result.overhead, 0);
  }
}

TEST(ResultOf, needs_three_samples_of_a_candidate) {
  const Trial trial(2);
  TwoRanksWindow window(trial);
  const std::vector<uint32_t> places = window.places_of(by_mpi);
  window.set(places[0], 300);
  window.early[places[1]].duration = Sample::unknown;
  expect_bounds(window.result().by_candidate[by_mpi], 100, 300);
  window.late[places[2]].duration = Sample::unknown;
  EXPECT_FALSE(window.result().by_candidate[by_mpi].is_known());
  expect_bounds(window.result().by_candidate[ruled], 100, 100);
}

// Of alltoallv: the sum of what the ranks send counts.
TEST(ResultOf, leaves_out_calls_that_move_more_or_less_than_most) {
  const Trial trial(2);
  TwoRanksWindow window(trial);
  for (uint32_t place = 0; place < 8; ++place) {
    window.early[place].weight = place % 2 == 0 ? 0 : 1000;
    window.late[place].weight = place % 2 == 0 ? 1000 : 0;
  }
  const std::vector<uint32_t> places = window.places_of(ruled);
  window.set(places[0], 900);
  window.set(places[1], 900);
  window.set(places[2], 50);
  expect_bounds(window.result().by_candidate[ruled], 100, 900);
  const auto weigh = [&](size_t which, float weight) {
    window.early[places[which]].weight = window.late[places[which]].weight = weight;
  };
  weigh(0, 560);  // 1120 together
  expect_bounds(window.result().by_candidate[ruled], 100, 900);
  weigh(0, 600);
  expect_bounds(window.result().by_candidate[ruled], 50, 900);
  weigh(1, 400);
  EXPECT_FALSE(window.result().by_candidate[ruled].is_known()) << "two samples are left";
  expect_bounds(window.result().by_candidate[by_mpi], 100, 100);
}

}  // namespace
}  // namespace sluice
