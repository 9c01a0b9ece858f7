// SPDX-License-Identifier: BSD-3-Clause
//
// Wake-ups on links that are upgraded to shared memory.
#include <atomic>
#include <thread>

#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/upgrade_rig.h"

namespace sluice {
namespace {

// Two ranks that sleep whenever they find nothing to do. A lost wake-up shows as a sleep of a
// quarter of a second.
class Sleepers : public testing::TestWithParam<size_t> {};

TEST_P(Sleepers, AreWoken) {
  Ranks ranks(shm(), 2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(exchange(ranks));
  ASSERT_STREQ(ranks.channel(0, 1).carrier(), "shm");
  ASSERT_STREQ(ranks.channel(1, 0).carrier(), "shm");
  const size_t bytes = GetParam();
  const uint32_t rounds = bytes > 10000 ? sweep(100U, 100U, 25U) : 1000;
  std::atomic<uint32_t> failures{0};
  const auto run = [&](size_t rank) {
    Channel& channel = ranks.channel(rank, 1 - rank);
    const auto await = [&](Message& message) {
      while (!message.done()) {
        if (!ranks.at(rank).progress()) ranks.at(rank).wait(longer_than_the_watchdog);
      }
      failures += !message.ok() || !message.holds_pattern();
    };
    for (uint32_t call = 10; call < 10 + rounds && failures == 0; ++call) {
      Message receive({call, 0, 0, 0}, bytes), send({call, 0, 0, 0}, bytes);
      receive.receive(channel);
      if (rank == 0) await(receive);
      send.fill().send(channel);
      await(send);
      if (rank == 1) await(receive);
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Bytes, Sleepers, testing::Values(8, 1000000));

}  // namespace
}  // namespace sluice
