// SPDX-License-Identifier: BSD-3-Clause
//
// A point in time on the monotonic clock at which a wait gives up; or never.
#pragma once

#include <algorithm>
#include <chrono>

namespace sluice {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Never passes.
  Deadline() = default;
  static Deadline never() { return {}; }

  // This many seconds from now; 0 means never, as in the knobs.
  static Deadline after(double seconds) {
    Deadline deadline;
    if (seconds > 0 && seconds < most_seconds) {
      const std::chrono::duration<double> span(seconds);
      deadline.when_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
    }
    return deadline;
  }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool passed() const { return !is_never() && Clock::now() >= when_; }

  // The time left, at most `limit`; zero if the deadline passed. Rounded up, so that a thread that
  // sleeps this long finds the deadline passed when it wakes.
  std::chrono::microseconds left(std::chrono::microseconds limit) const {
    if (is_never()) return limit;
    const auto rest = std::chrono::ceil<std::chrono::microseconds>(when_ - Clock::now());
    return std::clamp(rest, std::chrono::microseconds(0), limit);
  }

  // The earlier of two.
  friend Deadline sooner(const Deadline& a, const Deadline& b) { return a.when_ < b.when_ ? a : b; }

 private:
  static constexpr double most_seconds = 1e9;  // beyond: never, rather than an overflow

  Clock::time_point when_ = Clock::time_point::max();
};

}  // namespace sluice
