// SPDX-License-Identifier: BSD-3-Clause
//
// When the engine packs and unpacks: each piece just before it is sent, or as soon as it has its
// final value. The channels here move nothing; the test completes their operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/engine/execution.h"
#include "tests/unit/support/silent_channel.h"

namespace sluice {
namespace {

constexpr size_t segment = 1000;

class WrittenPacking final : public Packing {
 public:
  WrittenPacking(Journal& journal, std::string name) : journal_(journal), name_(std::move(name)) {}
  void move(size_t offset, size_t bytes) override {
    EXPECT_EQ(offset % segment, 0U);
    EXPECT_LE(bytes, segment);
    journal_.push_back(name_ + " " + std::to_string(offset / segment));
    moved += bytes;
    if (journal_.back() == fails_at) failure_ = {Code::unavailable, "no copy"};
  }
  Status failure() const override { return failure_; }
  size_t moved = 0;
  std::string fails_at;  // the event that is not one

 private:
  Status failure_;
  Journal& journal_;
  std::string name_;
};

// One rank's part of a call, with one channel to all peers.
class Rig final : public Channels {
 public:
  explicit Rig(Plan plan) : schedule_(nullptr, 0, std::move(plan)) {}

  Result<Channel*> channel(Rank) override { return &channel_; }

  void start(Call call, size_t segments) {
    memory_.resize(segments * segment);
    for (View* view : {&call.input, &call.output}) {
      view->base = memory_.data();
      view->count = memory_.size();
    }
    const Status status = execution_.start(schedule_, call, 1, segment, *this);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // Advances until only the network is waited for; returns the number of turns that had work left.
  int advance_until_waiting() {
    int busy = 0;
    while ((state = execution_.advance()) == Execution::State::busy) ++busy;
    return busy;
  }

  // The index of an event in the journal; its size if absent.
  ptrdiff_t place(const std::string& event) const {
    return std::find(journal.begin(), journal.end(), event) - journal.begin();
  }

  const Execution& execution() const { return execution_; }

  Journal journal;
  WrittenPacking source{journal, "pack"}, sink{journal, "unpack"};
  SilentChannel channel_{journal};
  Execution::State state = Execution::State::waiting;

 private:
  Schedule schedule_;
  Execution execution_;
  std::vector<std::byte> memory_;
};

Plan sending(Rank peers) {
  PlanBuilder plan;
  for (Rank peer = 1; peer <= peers; ++peer) plan.send(peer, Piece{});
  return std::move(plan).build();
}

TEST(Packing, ASegmentIsPackedWhenItIsSentAndNotBefore) {
  Rig rig(sending(1));
  Call call;
  call.output.source = &rig.source;
  rig.start(call, 10);
  EXPECT_GT(rig.advance_until_waiting(), 0) << "the network has its turn between two segments";
  EXPECT_EQ(rig.journal, (Journal{"pack 0", "send 0", "pack 1", "send 1"}));
  while (rig.channel_.finish_one()) rig.advance_until_waiting();
  EXPECT_EQ(rig.state, Execution::State::done);
  EXPECT_EQ(rig.journal.size(), 20U);
  EXPECT_EQ(rig.source.moved, 10 * segment);
}

TEST(Packing, WhatCouldNotBePackedIsNotSent) {
  Rig rig(sending(1));
  rig.source.fails_at = "pack 3";
  Call call;
  call.output.source = &rig.source;
  rig.start(call, 10);
  rig.advance_until_waiting();
  while (rig.channel_.finish_one()) rig.advance_until_waiting();
  EXPECT_EQ(rig.state, Execution::State::failed);
  EXPECT_EQ(rig.journal.back(), "pack 3");
  EXPECT_EQ(rig.place("send 3"), static_cast<ptrdiff_t>(rig.journal.size()));
  EXPECT_TRUE(rig.execution().failed_here());
  EXPECT_EQ(rig.execution().status().message(), "no copy");
}

TEST(Packing, WhatCouldNotBeUnpackedFailsTheCall) {
  PlanBuilder plan;
  plan.recv(1, Piece{});
  Rig rig(std::move(plan).build());
  rig.sink.fails_at = "unpack 1";
  Call call;
  call.output.sink = &rig.sink;
  rig.start(call, 4);
  rig.advance_until_waiting();
  while (rig.channel_.finish_one()) rig.advance_until_waiting();
  EXPECT_EQ(rig.state, Execution::State::failed);
  EXPECT_TRUE(rig.execution().failed_here());
}

TEST(Packing, ManyPeersTakeTurnsAndTheNetworkToo) {
  constexpr Rank peers = 5;
  Rig rig(sending(peers));
  Call call;
  call.output.source = &rig.source;
  rig.start(call, 4);
  EXPECT_GE(rig.advance_until_waiting(), int{peers});
  EXPECT_EQ(std::ranges::count(rig.journal, "send 1"), ptrdiff_t{peers});
  EXPECT_EQ(std::ranges::count(rig.journal, "send 2"), 0);
}

TEST(Packing, ASegmentIsUnpackedWhileOthersAreOnTheWay) {
  PlanBuilder plan;
  plan.recv(1, Piece{});
  Rig rig(std::move(plan).build());
  Call call;
  call.output.sink = &rig.sink;
  rig.start(call, 10);
  rig.advance_until_waiting();
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "recv 1"}));
  ASSERT_TRUE(rig.channel_.finish_one());
  rig.advance_until_waiting();
  EXPECT_EQ(rig.journal, (Journal{"recv 0", "recv 1", "recv 2", "unpack 0"}))
      << "the next receive is posted first";
  while (rig.channel_.finish_one()) rig.advance_until_waiting();
  EXPECT_EQ(rig.state, Execution::State::done);
  EXPECT_EQ(rig.sink.moved, 10 * segment);
}

TEST(Packing, ForwardingComesBeforeUnpacking) {
  PlanBuilder plan;
  plan.recv(1, Piece{});
  plan.send(2, Piece{});
  Rig rig(std::move(plan).build());
  Call call;
  call.output.sink = &rig.sink;
  rig.start(call, 4);
  rig.advance_until_waiting();
  ASSERT_TRUE(rig.channel_.finish_one());
  rig.advance_until_waiting();
  EXPECT_LT(rig.place("send 0"), rig.place("unpack 0"));
  EXPECT_LT(rig.place("unpack 0"), rig.place("send 1"));
}

TEST(Packing, WhatIsWrittenAgainIsNotUnpackedTwice) {
  PlanBuilder plan;
  const Piece front{Area::output, whole, {0, 1, 2}}, back{Area::output, whole, {1, 2, 2}};
  plan.recv(1, front);
  plan.recv(1, back);
  plan.recv(1, front);
  Rig rig(std::move(plan).build());
  Call call;
  call.output.sink = &rig.sink;
  rig.start(call, 4);
  rig.advance_until_waiting();
  while (rig.channel_.finish_one()) rig.advance_until_waiting();
  EXPECT_EQ(rig.state, Execution::State::done);
  for (const char* once : {"unpack 0", "unpack 1", "unpack 2", "unpack 3"}) {
    EXPECT_EQ(std::ranges::count(rig.journal, once), 1) << once;
  }
}

TEST(Packing, OperandsArePackedWhenTheyAreNeeded) {
  PlanBuilder plan;
  plan.copy(Piece{Area::input, whole, {}}, Piece{});
  Rig rig(std::move(plan).build());
  Call call;
  call.input.source = &rig.source;
  call.output.sink = &rig.sink;
  rig.start(call, 3);
  EXPECT_GE(rig.advance_until_waiting(), 3);
  EXPECT_EQ(rig.state, Execution::State::done);
  EXPECT_EQ(rig.source.moved, 3 * segment);
  EXPECT_EQ(rig.sink.moved, 3 * segment);
  EXPECT_LT(rig.place("pack 0"), rig.place("unpack 0"));
}

}  // namespace
}  // namespace sluice
