// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double drift = 1e-4;       // seconds a second, between clocks of different hosts
constexpr double tolerance = 0.125;  // of weights that count as alike
constexpr size_t least_known = 3;

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

std::vector<ClockOffset> clock_offsets(std::span<const std::vector<ExchangeTimes>> times) {
  std::vector<ClockOffset> offsets(times.empty() ? 0 : times.front().size());
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
  return offsets;
}

Trial::Bounds time_of_team(std::span<const Sample> samples, std::span<const ClockOffset> clocks,
                           int64_t now) {
  double shortest = infinite, longest = 0, entry = -infinite, exit = -infinite, error = 0;
  for (size_t rank = 0; rank < samples.size(); ++rank) {
    const Sample& sample = samples[rank];
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

namespace {

// Which calls of the window moved about as much as most.
std::vector<bool> find_alike(std::span<const std::span<const Sample>> windows, uint32_t length) {
  std::vector<double> weights(length, 0);
  for (const auto& window : windows) {
    for (uint32_t place = 0; place < length; ++place) {
      weights[place] += static_cast<double>(window[place].weight);
    }
  }
  const double usual = median_of(weights);
  std::vector<bool> alike(length);
  for (uint32_t place = 0; place < length; ++place) {
    alike[place] = std::abs(weights[place] - usual) <= usual * tolerance;
  }
  return alike;
}

Trial::Bounds middle_of(std::span<const Trial::Bounds> known) {
  if (known.size() < least_known) return {};
  std::vector<double> lows, highs;
  for (const Trial::Bounds& each : known) {
    lows.push_back(each.low);
    highs.push_back(each.high);
  }
  std::ranges::sort(lows);
  std::ranges::sort(highs);
  const size_t outermost = (highs.size() - 1) / 3;
  return {lows[outermost], highs[highs.size() - 1 - outermost]};
}

}  // namespace

Trial::Result result_of(const Trial& trial, std::span<const std::span<const Sample>> windows,
                        std::span<const ClockOffset> clocks, int64_t now) {
  const std::vector<bool> alike = find_alike(windows, trial.sample_count());
  std::array<std::vector<Trial::Bounds>, Trial::most_candidates> known;
  std::vector<Sample> samples(windows.size());
  for (uint32_t place = 0; place < trial.sample_count(); ++place) {
    std::ranges::transform(windows, samples.begin(),
                           [&](const auto& window) { return window[place]; });
    const Trial::Bounds bounds = time_of_team(samples, clocks, now);
    if (alike[place] && bounds.is_known()) known[trial.candidate_at(place)].push_back(bounds);
  }
  Trial::Result result;
  for (size_t i = 0; i < known.size(); ++i) {
    result.by_candidate[i] = middle_of(known[i]);
    for (const Trial::Bounds& each : known[i]) result.mean[i] += each.high;
    result.mean[i] /= static_cast<double>(std::max<size_t>(known[i].size(), 1));
  }
  return result;
}

}  // namespace sluice
