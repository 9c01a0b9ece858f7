// SPDX-License-Identifier: BSD-3-Clause
//
// A moment after which something is given up, on the monotonic clock; or no such moment.
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

  // So many seconds from now; as in the knobs, 0 is never.
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

  // The time that is left, but at most `limit`; zero if it passed. Rounded up, so that a sleeper
  // who wakes finds it passed.
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
