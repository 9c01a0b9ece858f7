// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of an arena see if one of them gives up.
#include "transports/shm/arena.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/support/stopwatch.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr uint32_t writing = 1, written = 2;  // values of ArenaHeader::aborted

class AbortedRounds : public ::testing::Test {
 protected:
  static constexpr uint32_t ranks = 2;

  std::byte* memory() {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    return memory_.get() + (arena_line - address % arena_line);
  }

  std::unique_ptr<std::byte[]> memory_ =
      std::make_unique<std::byte[]>(Rounds::bytes(ranks) + arena_line);
  ArenaHeader& header_ = *reinterpret_cast<ArenaHeader*>(memory());
  Rounds rounds_{memory(), 0, ranks};
};

TEST_F(AbortedRounds, TheFirstCauseIsTold) {
  EXPECT_FALSE(rounds_.signals().is_aborted());
  EXPECT_EQ(rounds_.signals().cause(), "");
  rounds_.signals().abort("disk on fire");
  rounds_.signals().abort("no memory");
  EXPECT_TRUE(rounds_.signals().is_aborted());
  EXPECT_EQ(rounds_.signals().cause(), "disk on fire");
}

TEST_F(AbortedRounds, ACauseIsAwaitedThatIsBeingWritten) {
  // Repeat if a thread was delayed for about as long as the wait for a reason lasts.
  for (bool in_time = false; !in_time;) {
    header_.aborted = writing;
    const auto start = steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(5ms);
      std::strcpy(header_.cause, "disk on fire");
      header_.aborted = written;
    });
    const std::string cause = rounds_.signals().cause();
    other.join();
    in_time = steady_clock::now() - start < 300ms;
    EXPECT_TRUE(!in_time || cause == "disk on fire") << cause;
  }
}

TEST_F(AbortedRounds, WhoWasKilledInTheMiddleIsNotAwaitedForLong) {
  header_.aborted = writing;
  const Stopwatch watch;
  EXPECT_EQ(rounds_.signals().cause(), "another rank gave up");
  EXPECT_TRUE(is_prompt(watch.elapsed(), 1s));
}

}  // namespace
}  // namespace sluice
