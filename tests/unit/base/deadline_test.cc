// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

using std::chrono::microseconds;

TEST(Deadline, NeverDoesNotPass) {
  for (const Deadline& deadline : {Deadline(), Deadline::never(), Deadline::after(0),
                                   Deadline::after(-1), Deadline::after(1e300)}) {
    EXPECT_TRUE(deadline.is_never());
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(deadline.left(microseconds(1234)), microseconds(1234));
  }
}

TEST(Deadline, PassesAfterItsTime) {
  const auto start = Deadline::Clock::now();
  const Deadline deadline = Deadline::after(0.02);
  EXPECT_FALSE(deadline.is_never());
  while (!deadline.passed()) {
    ASSERT_LT(Deadline::Clock::now() - start, std::chrono::seconds(10));
    std::this_thread::sleep_for(deadline.left(microseconds(1000)));
  }
  EXPECT_GE(Deadline::Clock::now() - start, std::chrono::milliseconds(20));
  EXPECT_EQ(deadline.left(microseconds(1000)), microseconds(0));
}

TEST(Deadline, LeftIsBoundedByTheLimit) {
  const Deadline deadline = Deadline::after(100);
  EXPECT_EQ(deadline.left(microseconds(5)), microseconds(5));
  EXPECT_GT(deadline.left(std::chrono::seconds(1000)), std::chrono::seconds(10));
  EXPECT_LE(deadline.left(std::chrono::seconds(1000)), std::chrono::seconds(100));
}

TEST(Deadline, SoonerIsTheEarlier) {
  const Deadline near = Deadline::after(1), far = Deadline::after(1000);
  const microseconds limit = std::chrono::seconds(100);
  EXPECT_LT(sooner(near, far).left(limit), std::chrono::seconds(2));
  EXPECT_LT(sooner(far, near).left(limit), std::chrono::seconds(2));
  EXPECT_LT(sooner(Deadline::never(), near).left(limit), std::chrono::seconds(2));
  EXPECT_TRUE(sooner(Deadline::never(), Deadline::never()).is_never());
}

}  // namespace
}  // namespace sluice
