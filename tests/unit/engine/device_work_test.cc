// SPDX-License-Identifier: BSD-3-Clause
//
// When the engine sends and receives if a call's data lies on a device: no segment before its copy
// is done. The channel moves nothing, and the device works only when the test says so.
#include <gtest/gtest.h>

#include <string>

#include "src/engine/execution.h"
#include "tests/unit/support/fake_device.h"
#include "tests/unit/support/silent_channel.h"

namespace sluice {
namespace {

using State = Execution::State;

constexpr size_t piece_bytes = 100;

class DeviceRig final : public Channels {
 public:
  DeviceRig(Plan plan, size_t segments) : schedule_(nullptr, 0, std::move(plan)) {
    call_.device = &device;
    call_.output.count = segments * piece_bytes;
    call_.output.base = device.allocate(call_.output.count);
    call_.input = call_.output;
    started = execution.start(schedule_, call_, 1, piece_bytes, *this);
  }
  Result<Channel*> channel(Rank) override { return &channel_; }

  State advance() {
    State state = execution.advance();
    while (state == State::busy) state = execution.advance();
    return state;
  }
  // The network completes an operation, and the call goes on.
  State finish_one() {
    EXPECT_TRUE(channel_.finish_one());
    return advance();
  }
  // The device does a piece of work, and the call goes on.
  State work(size_t pieces = 1) {
    device.work(pieces);
    return advance();
  }

  FakeDevice device{{}};
  Journal journal;
  Execution execution;
  Status started;

 private:
  Schedule schedule_;
  Call call_;
  SilentChannel channel_{journal};
};

Plan sending() {
  PlanBuilder plan;
  plan.send(1, Piece{});
  return std::move(plan).build();
}

Plan receiving() {
  PlanBuilder plan;
  plan.recv(1, Piece{});
  return std::move(plan).build();
}

TEST(DeviceWork, ASegmentIsSentWhenItsCopyIsDone) {
  DeviceRig rig(sending(), 4);
  EXPECT_EQ(rig.advance(), State::waiting);
  EXPECT_EQ(rig.device.begun(), 2U);
  EXPECT_TRUE(rig.journal.empty());
  EXPECT_TRUE(rig.execution.waiting_for().empty()) << "the peer is not waited for";
  EXPECT_EQ(rig.execution.awaited_device(), &rig.device);
  rig.work();
  EXPECT_EQ(rig.journal, (Journal{"send 0"}));
  EXPECT_EQ(rig.execution.waiting_for(), std::vector<Rank>{1});
  rig.work();
  EXPECT_EQ(rig.journal, (Journal{"send 0", "send 1"}));
  EXPECT_EQ(rig.device.begun(), 2U) << "both slots are being sent from";
  EXPECT_EQ(rig.execution.awaited_device(), nullptr);
  rig.finish_one();
  EXPECT_EQ(rig.device.begun(), 3U);
  EXPECT_EQ(rig.journal, (Journal{"send 0", "send 1"}));
}

TEST(DeviceWork, ASlotIsReceivedIntoAgainWhenItIsCopied) {
  DeviceRig rig(receiving(), 4);
  rig.advance();
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "recv 1"}));
  rig.finish_one();
  EXPECT_EQ(rig.device.begun(), 1U);
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "recv 1"}));
  rig.work();
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "recv 1", "recv 2"}));
}

TEST(DeviceWork, TheCallIsDoneWhenTheDeviceIs) {
  DeviceRig rig(receiving(), 2);
  rig.advance();
  rig.finish_one();
  EXPECT_EQ(rig.finish_one(), State::waiting);
  EXPECT_EQ(rig.work(), State::waiting);
  EXPECT_TRUE(rig.execution.waiting_for().empty());
  EXPECT_EQ(rig.execution.awaited_device(), &rig.device);
  EXPECT_EQ(rig.work(), State::done);
}

TEST(DeviceWork, LocalWorkWaitsForNothingButTheEnd) {
  PlanBuilder plan;
  const Piece scratch = plan.scratch(Piece{});
  plan.copy(Piece{}, scratch);
  plan.copy(scratch, Piece{});
  DeviceRig rig(std::move(plan).build(), 3);
  EXPECT_EQ(rig.advance(), State::waiting);
  EXPECT_EQ(rig.device.begun(), 6U);
  EXPECT_EQ(rig.work(5), State::waiting);
  EXPECT_EQ(rig.work(), State::done);
}

TEST(DeviceWork, WhatWasReceivedIsForwardedBehindItsCopy) {
  PlanBuilder plan;
  plan.recv(1, Piece{});
  plan.send(2, Piece{});
  DeviceRig rig(std::move(plan).build(), 1);
  rig.advance();
  rig.finish_one();
  EXPECT_EQ(rig.device.begun(), 2U) << "in and out again, without a wait between them";
  rig.work();
  EXPECT_EQ(rig.journal, (Journal{"recv 0"}));
  rig.work();
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "send 0"}));
  EXPECT_EQ(rig.finish_one(), State::done);
}

TEST(DeviceWork, WhatCouldNotBeCopiedIsNotSent) {
  DeviceRig rig(sending(), 2);
  rig.device.fails_at = 2;
  rig.advance();
  rig.work();
  EXPECT_EQ(rig.work(), State::failed);
  EXPECT_EQ(rig.journal, (Journal{"send 0"}));
  EXPECT_TRUE(rig.execution.failed_here());
  EXPECT_EQ(rig.execution.status().message(), "a fake failure");
  rig.execution.cancel();
}

TEST(DeviceWork, AFailureAfterTheLastMessageFailsTheCall) {
  DeviceRig rig(receiving(), 1);
  rig.device.fails_at = 1;
  rig.advance();
  EXPECT_EQ(rig.finish_one(), State::waiting);
  EXPECT_EQ(rig.work(), State::failed);
  EXPECT_TRUE(rig.execution.failed_here());
}

}  // namespace
}  // namespace sluice
