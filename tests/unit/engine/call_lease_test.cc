// SPDX-License-Identifier: BSD-3-Clause
//
// Leases of calls of a class (src/engine/trials.h).
#include <gtest/gtest.h>

#include "src/engine/trials.h"

namespace sluice {
namespace {

// A class that has looked at its first seven calls: 57 calls are left before its trials.
void begin_waiting(CallClass& of) {
  for (int call = 0; call < 7; ++call) (void)of.trial.next(64);
  of.trial.learn_time_spent({});
}

TEST(CallLease, counts_what_was_taken) {
  for (const uint32_t taken : {0U, 1U, 30U, 57U}) {
    CallClass of{0, Trial(2)};
    begin_waiting(of);
    CallLease lease;
    EXPECT_FALSE(lease.use()) << "it has not begun";
    lease.begin(&of);
    EXPECT_EQ(of.lease, &lease);
    for (uint32_t i = 0; i < taken; ++i) EXPECT_TRUE(lease.use());
    EXPECT_EQ(of.trial.uneventful(), 57U) << "the class counts them when it ends";
    lease.end();
    EXPECT_EQ(of.trial.uneventful(), 57 - taken);
    EXPECT_EQ(of.lease, nullptr);
    EXPECT_FALSE(lease.use());
    lease.end();
    EXPECT_EQ(of.trial.uneventful(), 57 - taken) << "once";
  }
}

TEST(CallLease, ends_when_nothing_is_left) {
  CallClass of{0, Trial(2)};
  begin_waiting(of);
  CallLease lease;
  lease.begin(&of);
  for (int i = 0; i < 57; ++i) ASSERT_TRUE(lease.use());
  EXPECT_FALSE(lease.use() || lease.use_for_mpi());
  EXPECT_EQ(of.lease, nullptr);
  EXPECT_FALSE(lease.use());
  EXPECT_TRUE(of.trial.next(64).takes_part);
  lease.begin(&of);  // in a window: no call is to be had
  EXPECT_FALSE(lease.use());
  EXPECT_FALSE(of.trial.next(64).is_timed);
  EXPECT_TRUE(of.trial.next(64).is_timed) << "the window's third call";
}

TEST(CallLease, is_for_calls_of_one_side) {
  CallClass of{0, Trial(2)};
  begin_waiting(of);
  CallLease lease;
  lease.begin_for_mpi(&of);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(!lease.use() && lease.use_for_mpi());
  EXPECT_EQ(of.lease, &lease);
  lease.end();
  EXPECT_EQ(of.trial.uneventful(), 37U);
  EXPECT_FALSE(lease.use() || lease.use_for_mpi());
  lease.begin_for_mpi(&of);
  for (int i = 0; i < 37; ++i) ASSERT_TRUE(!lease.use() && lease.use_for_mpi());
  EXPECT_FALSE(lease.use() || lease.use_for_mpi());
  EXPECT_EQ(of.lease, nullptr);
  EXPECT_TRUE(of.trial.next(64).takes_part);
  lease.begin(nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(lease.use());
  lease.begin_for_mpi(nullptr);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(!lease.use() && lease.use_for_mpi());
}

TEST(CallLease, ends_when_another_one_of_the_class_begins) {
  CallClass of{0, Trial(2)}, other{1, Trial(2)};
  begin_waiting(of);
  begin_waiting(other);
  CallLease first, third;
  {
    CallLease second;
    first.begin(&of);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(first.use());
    second.begin(&of);
    EXPECT_FALSE(first.use());
    third.begin(&other);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(second.use());
    EXPECT_EQ(of.lease, &second);
  }
  EXPECT_EQ(of.lease, nullptr) << "with its owner";
  EXPECT_EQ(of.trial.uneventful(), 27U);
  ASSERT_TRUE(third.use());
  third.begin(&of);
  EXPECT_EQ(other.trial.uneventful(), 56U);
  EXPECT_EQ(other.lease, nullptr);
  third.begin(nullptr);
  EXPECT_EQ(of.lease, nullptr);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(third.use()) << "it has no limit";
}

}  // namespace
}  // namespace sluice
