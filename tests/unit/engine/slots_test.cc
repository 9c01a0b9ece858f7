// SPDX-License-Identifier: BSD-3-Clause
//
// When a team has slots in shared memory, and what it does without them.
#include "src/engine/slots.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/shm/shm.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

class WithSlots : public ::testing::Test {
 protected:
  void run(Rank ranks, const Body& body, const std::string& algorithm = "") {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust adjust = [&](Rank, Process& process) {
      process.arenas = arenas_.source();
      process.host = 1;
      if (!algorithm.empty()) process.knobs.algorithm[0] = algorithm;
      process.knobs.timeout = 20;
    };
    on_ranks(ranks, endpoints, adjust, body);
  }

  static Status broadcast_in(Member& member, std::vector<std::byte>& data) {
    Call call;
    call.collective = Collective::broadcast;
    call.bytes = data.size();
    call.input.base = call.output.base = data.data();
    call.input.count = call.output.count = data.size();
    return member.team->run(call);
  }
  // Broadcasts `bytes` bytes and checks the result.
  static void broadcast(Member& member, size_t bytes) {
    std::vector<std::byte> data(bytes, static_cast<std::byte>(member.rank == 0 ? 42 : 1));
    ASSERT_TRUE(broadcast_in(member, data).ok());
    ASSERT_EQ(data, std::vector<std::byte>(bytes, std::byte{42}));
  }

  LoopbackHub hub_;
  ArenaHub arenas_;
};

TEST_F(WithSlots, ShortCallsNeedNone) {
  run(4, [&](Member& member) {
    for (size_t bytes : {1U, 8U, 24U, 95U, 96U}) broadcast(member, bytes);
  });
  EXPECT_EQ(arenas_.reservations(), 0U);
  EXPECT_EQ(arenas_.touched(), 0U);
}

TEST_F(WithSlots, TheFirstLongCallReservesThem) {
  run(3, [&](Member& member) {
    for (size_t bytes : {8U, 97U, 5000U, 8U, 200'000U}) broadcast(member, bytes);
  });
  EXPECT_EQ(arenas_.reservations(), 3U);
  EXPECT_EQ(arenas_.touched(), 0U);
}

// Calls that need slots reserve them again; then it takes twice as many calls to give them back.
TEST_F(WithSlots, TheyAreGivenBackAfterManyShortCalls) {
  run(3, [&](Member& member) {
    broadcast(member, 5000);
    for (uint32_t i = 0; i < Slots::first_idle; ++i) broadcast(member, 8);
    broadcast(member, 5000);
    for (uint32_t i = 0; i < Slots::first_idle; ++i) broadcast(member, 8);
    broadcast(member, 5000);
  });
  EXPECT_EQ(arenas_.reservations(), 2U * 3U);
  EXPECT_EQ(arenas_.touched(), 0U);
}

// The message by which ranks agree on slots is also one byte long.
TEST_F(WithSlots, WhoseCallNeedsNoneDisagreesWithWhoseDoes) {
  run(2, [&](Member& member) {
    std::vector<std::byte> data(member.rank == 0 ? 5000 : 1);
    const Status status = broadcast_in(member, data);
    EXPECT_EQ(status.code(), member.rank == 0 ? Code::aborted : Code::mismatch) << status.message();
    EXPECT_NE(status.message().find("sends 5000 bytes where this rank expects 1"),
              std::string::npos)
        << status.message();
  });
}

TEST_F(WithSlots, WithoutRoomForThemAllGoOn) {
  arenas_.refuse_slots(1);
  run(3, [&](Member& member) {
    for (size_t bytes : {8U, 97U, 200'000U, 8U, 5000U}) broadcast(member, bytes);
  });
  EXPECT_EQ(arenas_.reservations(), 3U) << "it is not tried at each call";
  EXPECT_EQ(arenas_.touched(), 0U);
}

TEST_F(WithSlots, TheyAreTriedAgainAfterMany) {
  arenas_.refuse_slots(2);
  run(3, [&](Member& member) {
    broadcast(member, 5000);
    broadcast(member, 8);
    if (member.rank == 0) arenas_.refuse_slots(3);
    for (uint32_t i = 0; i < Slots::before_retry; ++i) broadcast(member, 8);
    broadcast(member, 5000);
    broadcast(member, 5000);
  });
  EXPECT_EQ(arenas_.reservations(), 2U * 3U);
  EXPECT_EQ(arenas_.touched(), 0U);
}

}  // namespace
}  // namespace sluice::testing
