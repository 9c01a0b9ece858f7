// SPDX-License-Identifier: BSD-3-Clause
//
// Measures time without the time that threads were runnable but had no processor, and judges it in
// `make check-speed` alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace sluice {

// How long the thread with this folder in /proc was runnable without a processor; 0 if the thread
// has ended, or if the kernel does not provide schedstat.
inline std::chrono::nanoseconds held_up_in(const std::string& folder) {
  const std::string path = folder + "/schedstat";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  long long ran = 0, waited = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &ran, &waited) != 2) return {};
  return std::chrono::nanoseconds(waited);
}

// The same for the calling thread.
inline std::chrono::nanoseconds held_up() { return held_up_in("/proc/thread-self"); }

// Starts at construction. elapsed() subtracts the time that this process's threads waited for a
// processor since then. Threads that have ended are not counted.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  std::chrono::nanoseconds elapsed() const {
    const auto passed = Clock::now() - began_;
    std::chrono::nanoseconds waited{};
    for (const auto& [thread, now] : held_up_by_each()) {
      const auto before = held_up_before_.find(thread);
      waited += now - (before == held_up_before_.end() ? now.zero() : before->second);
    }
    return passed - waited;
  }

 private:
  using ByThread = std::map<std::string, std::chrono::nanoseconds>;

  static ByThread held_up_by_each() {
    ByThread times;
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", gone)) {
      times[thread.path()] = held_up_in(thread.path());
    }
    return times;
  }

  const ByThread held_up_before_ = held_up_by_each();
  const Clock::time_point began_ = Clock::now();
};

// Whether something took less than `bound`. Judged, and printed, only with CHECK_SPEED=1
// (`make check-speed`): on a busy machine a time tells nothing. Elsewhere what does not end is
// ended by the test's watchdog.
inline ::testing::AssertionResult is_prompt(std::chrono::nanoseconds took,
                                            std::chrono::nanoseconds bound) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const double times[] = {Milliseconds(took).count(), Milliseconds(bound).count()};
  const char* const judges = std::getenv("CHECK_SPEED");
  if (judges == nullptr || std::string(judges) != "1") return ::testing::AssertionSuccess();
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::printf("%s.%s took %.3f of %.0f ms\n", test->test_suite_name(), test->name(), times[0],
              times[1]);
  if (took < bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "took " << times[0] << " ms, not less than " << times[1];
}

}  // namespace sluice
