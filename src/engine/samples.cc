// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/samples.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double drift = 1e-4;       // seconds a second, between clocks of different hosts
constexpr double tolerance = 0.125;  // of weights that count as alike
constexpr size_t least_known = 3;
constexpr size_t most_places = Trial::most_candidates * Trial::turns;  // of a window

double median_of(std::span<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

void find_clock_offsets(std::span<const std::vector<ExchangeTimes>> times,
                        std::span<ClockOffset> offsets) {
  for (size_t rank = 1; rank < offsets.size(); ++rank) {
    double least = -infinite, most = infinite;
    for (const auto& exchange : times) {
      const ExchangeTimes &own = exchange[rank], &first = exchange[0];
      least = std::max(least, static_cast<double>(own.entry - first.exit));
      most = std::min(most, static_cast<double>(own.exit - first.entry));
    }
    // (Bounds that contradict each other: a clock has jumped between the exchanges.)
    const double error = least <= most ? (most - least) / 2 : infinite;
    offsets[rank] = {(least + most) / 2, error};
  }
}

namespace {

// sample_of: a rank's.
Trial::Bounds time_of(size_t ranks, const auto& sample_of, std::span<const ClockOffset> clocks,
                      int64_t now) {
  double shortest = infinite, longest = 0, entry = -infinite, exit = -infinite, error = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const Sample& sample = sample_of(rank);
    if (sample.duration == Sample::unknown) return {};
    const auto duration = static_cast<double>(sample.duration);
    const double ahead = clocks.empty() ? 0 : clocks[rank].ahead;
    const double entered = static_cast<double>(sample.entry - now) - ahead;
    if (!clocks.empty()) {
      error = std::max(error, clocks[rank].error + drift * std::abs(entered));
    }
    shortest = std::min(shortest, duration);
    longest = std::max(longest, duration);
    entry = std::max(entry, entered);
    exit = std::max(exit, entered + duration);
  }
  const double time = exit - entry;
  return {std::max(shortest, time - 2 * error), std::min(longest, time + 2 * error)};
}

// Which calls of the window moved about as much as most.
std::bitset<most_places> find_alike(std::span<const std::span<const Sample>> windows,
                                    uint32_t length) {
  std::array<double, most_places> weights{};
  for (const auto& window : windows) {
    for (uint32_t place = 0; place < length; ++place) {
      weights[place] += static_cast<double>(window[place].weight);
    }
  }
  std::array<double, most_places> sorted = weights;
  const double usual = median_of(std::span(sorted).first(length));
  std::bitset<most_places> alike;
  for (uint32_t place = 0; place < length; ++place) {
    alike[place] = std::abs(weights[place] - usual) <= usual * tolerance;
  }
  return alike;
}

// The known bounds of a candidate.
struct Known {
  std::array<double, Trial::turns> lows{}, highs{};
  size_t count = 0;

  void add(const Trial::Bounds& bounds) {
    lows[count] = bounds.low;
    highs[count++] = bounds.high;
  }
  double mean() const {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += highs[i];
    return sum / static_cast<double>(std::max<size_t>(count, 1));
  }
  Trial::Bounds middle() {
    if (count < least_known) return {};
    std::ranges::sort(std::span(lows).first(count));
    std::ranges::sort(std::span(highs).first(count));
    const size_t outermost = (count - 1) / 3;
    return {lows[outermost], highs[count - 1 - outermost]};
  }
};

}  // namespace

Trial::Bounds time_of_team(std::span<const Sample> samples, std::span<const ClockOffset> clocks,
                           int64_t now) {
  return time_of(
      samples.size(), [&](size_t rank) -> const Sample& { return samples[rank]; }, clocks, now);
}

Trial::Result result_of(const Trial& trial, std::span<const std::span<const Sample>> windows,
                        std::span<const ClockOffset> clocks, int64_t now) {
  const auto alike = find_alike(windows, trial.sample_count());
  std::array<Known, Trial::most_candidates> known;
  for (uint32_t place = 0; place < trial.sample_count(); ++place) {
    const auto sample_of = [&](size_t rank) -> const Sample& { return windows[rank][place]; };
    const Trial::Bounds bounds = time_of(windows.size(), sample_of, clocks, now);
    if (alike[place] && bounds.is_known()) known[trial.candidate_at(place)].add(bounds);
  }
  Trial::Result result;
  for (size_t i = 0; i < known.size(); ++i) {
    result.mean[i] = known[i].mean();
    result.by_candidate[i] = known[i].middle();
  }
  return result;
}

}  // namespace sluice
