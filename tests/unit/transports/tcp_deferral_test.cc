// SPDX-License-Identifier: BSD-3-Clause
//
// A large message that comes just before its receive is posted.

#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A large message that nobody has posted for, read in the turn in which a token finished: its
// receive may be about to be posted, so it is deferred.
class TcpDeferral : public TcpPlayed {
 protected:
  static constexpr uint32_t large = 9000;

  TcpDeferral() : peer_(std::make_unique<Stranger>(blob_.entries[0])) { greet(*peer_); }

  // Hears the token, with what is behind it read too.
  void hear_token(const Script& script) {
    token_.receive(*channel_);
    script.say(*peer_);
    ASSERT_TRUE(wait_for(*endpoint_, [&] { return token_.done(); }));
  }
  // With so many links pending, those are driven that poll knows something of.
  void crowd() {
    for (uint64_t i = 0; i < 3; ++i) {
      const AddressBlob nowhere{i + 7, {}, {}};
      auto opened = endpoint_->open(team_, {{0x5150, i}, nowhere.encode(), "nobody"});
      ASSERT_TRUE(opened.ok());
      others_.push_back(std::move(*opened));
      awaited_.push_back(std::make_unique<Message>(Tag{1, 0, 0, 0}, 0));
      awaited_.back()->receive(*others_.back());
    }
  }

  std::unique_ptr<Stranger> peer_;
  Message token_{{1, 0, 0, 0}, 0};
  std::vector<std::unique_ptr<Channel>> others_;
  Messages awaited_;
};

TEST_F(TcpDeferral, WhatIsBehindItComesThoughNothingMoreIsSent) {
  for (const bool crowded : {false, true}) {
    if (crowded) crowd();
    token_.operation.tag.call += crowded;
    const Tag tag{token_.operation.tag.call, 1, 0, 0}, behind_tag{tag.call, 2, 0, 0};
    Message behind(behind_tag, 8), first(tag, large);
    Script script;
    script.add({FrameType::data, true, 0, team_, token_.operation.tag, 0});
    script.add({FrameType::data, true, large, team_, tag, 0});
    script.add({FrameType::data, true, 8, team_, behind_tag, 0});
    behind.receive(*channel_);
    hear_token(script);
    ASSERT_TRUE(done_in(behind, seconds(5))) << (crowded ? "crowded" : "alone");
    first.receive(*channel_);
    ASSERT_TRUE(done_in(first, seconds(5)));
    EXPECT_TRUE(behind.holds_pattern() && first.holds_pattern());
  }
}

// Though nothing more can be read: it waits in the inbox.
TEST_F(TcpDeferral, IsNotSleptOver) {
  Message behind({1, 2, 0, 0}, 8);
  behind.receive(*channel_);
  hear_token(Script().add(data(0)).add(data(large, 1)).add(data(8, 2)));
  for (int turn = 0; turn < 100 && !behind.done(); ++turn) {
    endpoint_->wait(longer_than_the_watchdog);
    endpoint_->progress();
  }
  EXPECT_TRUE(behind.done());
}

TEST_F(TcpDeferral, LandsWhereItIsPostedInTime) {
  Message message({1, 1, 0, 0}, large);
  hear_token(Script().add(data(0)).add(data(large, 1)));
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok() && message.holds_pattern());
}

TEST_F(TcpDeferral, OfAnotherOperationIsNamed) {
  Message message({2, 1, 0, 77}, large);
  Frame other = data(large);
  other.tag = {2, 1, 0, 31};
  hear_token(Script().add(data(0)).add(other));
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::mismatch);
  EXPECT_EQ(message.operation.seen_signature, 31U);
}

TEST_F(TcpDeferral, IsDroppedWithItsTeam) {
  const TeamId alive{Ranks::process(0), 2};
  const auto other = open(alive);
  Message message({1, 0, 0, 0}, 8);
  {
    Message never({1, 5, 0, 0}, 8);
    never.receive(*channel_);
    const Frame next{FrameType::data, true, 8, alive, {1, 0, 0, 0}, 0};
    hear_token(Script().add(data(0)).add(data(large, 1)).add(next));
    channel_->withdraw();
  }
  channel_.reset();
  message.receive(*other);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok() && message.holds_pattern());
}

TEST_F(TcpDeferral, IsStillToBeHadFromAPeerThatWent) {
  Message whole({1, 1, 0, 0}, large), none({1, 2, 0, 0}, 8);
  none.receive(*channel_);
  hear_token(Script().add(data(0)).add(data(large, 1)));
  peer_.reset();
  ASSERT_TRUE(done_in(none, seconds(5)));
  EXPECT_EQ(none.code(), Code::peer_lost);
  whole.receive(*channel_);
  ASSERT_TRUE(done_in(whole, seconds(5)));
  EXPECT_TRUE(whole.ok() && whole.holds_pattern()) << whole.why();
}

TEST_F(TcpDeferral, IsLostWithAPeerThatWentHalfway) {
  Message half({1, 1, 0, 0}, large);
  hear_token(Script().add(data(0)).add(data(large, 1), large / 2));
  peer_.reset();
  half.receive(*channel_);
  ASSERT_TRUE(done_in(half, seconds(5)));
  EXPECT_EQ(half.code(), Code::peer_lost);
}

TEST_F(TcpDeferral, GoesBeforeAGoodbye) {
  Message message({1, 1, 0, 0}, large), none({1, 2, 0, 0}, 8);
  none.receive(*channel_);
  hear_token(Script().add(data(0)).add(data(large, 1)).add({FrameType::bye}));
  ASSERT_TRUE(done_in(none, seconds(5)));
  EXPECT_NE(none.why().find("finished"), std::string::npos) << none.why();
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
}

// Another thread's messages may finish in every turn: it is deferred so many times and no more.
TEST_F(TcpDeferral, NotForEver) {
  Message behind({1, 2, 0, 0}, 8);
  behind.receive(*channel_);
  hear_token(Script().add(data(0)).add(data(large, 1)).add(data(8, 2)));
  Stranger busy(blob_.entries[0]);
  const AddressBlob mine{1, key_, {}};
  auto opened = endpoint_->open(team_, {{0x5150, 50}, mine.encode(), "busy"});
  ASSERT_TRUE(opened.ok());
  Greeting hello = greeting();
  hello.from = {0x5150, 50};
  busy.say(hello);
  for (uint32_t i = 0; i < 100 && !behind.done(); ++i) {
    Message message({2, i, 0, 0}, 0);
    message.receive(**opened);
    Script().add({FrameType::data, true, 0, team_, {2, i, 0, 0}, 0}).say(busy);
    ASSERT_TRUE(done_in(message, seconds(5)));
  }
  EXPECT_TRUE(behind.done());
}

}  // namespace
}  // namespace sluice
