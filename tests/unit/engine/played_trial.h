// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of trials share: a class of calls whose times the tests make up.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "src/engine/samples.h"
#include "src/engine/trial.h"

namespace sluice {

constexpr size_t usual_bytes = 1000;
// Candidates, as trials number them on the host.
constexpr uint8_t ruled = Trial::first, by_mpi = 1;

// Nanoseconds that a call takes the team.
using CallTimes = std::function<double(uint8_t candidate, uint64_t call)>;

inline CallTimes fixed_times(double of_ruled, double of_mpi) {
  return [=](uint8_t candidate, uint64_t) { return candidate == ruled ? of_ruled : of_mpi; };
}

// Makes calls of a class, all of one size, and agrees whenever that is due.
class PlayedTrial {
 public:
  explicit PlayedTrial(CallTimes times, uint8_t candidates = 2)
      : trial(candidates), times_(std::move(times)) {}

  Trial::Next call() {
    if (trial.due() == Trial::Due::time_spent) trial.learn_time_spent(time_spent);
    if (trial.due() == Trial::Due::window) learn();
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

}  // namespace sluice
