// SPDX-License-Identifier: BSD-3-Clause
//
// Events during a receive in progress, that is, after the header and part of the payload have come.
#include <algorithm>
#include <vector>

#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

using std::chrono::seconds;

// The window holds three messages of 3,000 bytes with their headers.
class TcpReceiving : public TcpPlayed {
 protected:
  TcpReceiving()
      : TcpPlayed(small()),
        peer_(blob_.entries[0]),
        other_(open(alive_)),
        keeps_reading_(tag(9), 0) {
    greet(peer_);
    keeps_reading_.receive(*other_);
  }

  static TcpOptions small() {
    TcpOptions options;
    options.window = 10000;
    return options;
  }
  static Tag tag(uint32_t ordinal) { return {1, ordinal, 0, 0}; }

  // The endpoint reads the frame's header and the first half of its payload.
  void begin(const Frame& frame) {
    Message token({2, tokens_, 0, 0}, 0);
    token.receive(*other_);
    Script()
        .add({FrameType::data, true, 0, alive_, {2, tokens_++, 0, 0}, 0})
        .add(frame, frame.length / 2)
        .say(peer_);
    ASSERT_TRUE(done_in(token, seconds(20)));
  }
  // The second half, followed by a message for the other team.
  void end(const Frame& frame) {
    const Message pattern(frame.tag, 0);
    std::vector<std::byte> rest;
    for (size_t i = frame.length / 2; i < frame.length; ++i) rest.push_back(pattern.expected(i));
    peer_.say(rest.data(), rest.size());
    Message behind({2, tokens_, 0, 0}, 100);
    behind.receive(*other_);
    Script().add({FrameType::data, true, 100, alive_, {2, tokens_++, 0, 0}, 0}).say(peer_);
    ASSERT_TRUE(done_in(behind, seconds(120)));
    EXPECT_TRUE(behind.ok() && behind.holds_pattern()) << behind.why();
  }

  void expect_end(const char* why) {
    ASSERT_TRUE(done_in(keeps_reading_, seconds(20)));
    EXPECT_EQ(keeps_reading_.code(), Code::internal);
    EXPECT_EQ(keeps_reading_.why(), why);
  }

  static constexpr uint32_t bytes = 3000;
  const TeamId alive_{Ranks::process(0), 2};
  Stranger peer_;
  std::unique_ptr<Channel> other_;
  Message keeps_reading_;  // so that the link is read with nothing else pending
  uint32_t tokens_ = 0;
};

// The receive gets the first part and the rest. The room in the window is released: more bytes come
// this way than the window holds, and all are credited.
TEST_F(TcpReceiving, AReceivePostedMeanwhile) {
  size_t owed = Frame::bytes;  // for the token of greet()
  for (uint32_t i = 0; i < 8; ++i) {
    SCOPED_TRACE(i);
    Message message(tag(i), bytes, 3);
    ASSERT_NO_FATAL_FAILURE(begin(data(bytes, i)));
    message.receive(*channel_);
    EXPECT_FALSE(message.done());
    ASSERT_NO_FATAL_FAILURE(end(data(bytes, i)));
    ASSERT_TRUE(message.ok() && message.holds_pattern()) << message.why();
    owed += Frame::bytes + bytes;
    if (owed < options_.window / 2) continue;
    const Frame credit = hear(peer_);
    ASSERT_EQ(credit.type, FrameType::credit);
    ASSERT_EQ(credit.team, team_);
    ASSERT_EQ(credit.credit(), owed);
    owed = 0;
  }
  Message last(tag(100), 8);
  last.send(*channel_);
  EXPECT_EQ(hear(peer_).credit(), owed);
}

TEST_F(TcpReceiving, AReceiveOfAnotherLengthPostedMeanwhile) {
  for (uint32_t i = 0; i < 8; ++i) {
    Message message(tag(i), bytes - 1);
    ASSERT_NO_FATAL_FAILURE(begin(data(bytes, i)));
    message.receive(*channel_);
    EXPECT_EQ(message.code(), Code::mismatch);
    EXPECT_EQ(message.operation.seen_bytes, bytes);
    ASSERT_NO_FATAL_FAILURE(end(data(bytes, i)));
  }
}

// The endpoint would send as many CTS, or keep as many notes, as the peer likes.
TEST_F(TcpReceiving, AnnouncedTwice) {
  const Frame rts{FrameType::rts, false, 0, team_, tag(0), 0};
  Script().add(rts).add(rts).say(peer_);
  expect_end("rank 0 sent RTS twice for a message");
}

TEST_F(TcpReceiving, AnnouncedTwiceWithAReceive) {
  Message message(tag(0), bytes);
  message.receive(*channel_);
  const Frame rts{FrameType::rts, false, 0, team_, tag(0), 0};
  Script().add(rts).add(rts).say(peer_);
  expect_end("rank 0 sent RTS twice for a message");
}

TEST_F(TcpReceiving, AnnouncedTwiceWithAReceiveSince) {
  const Frame rts{FrameType::rts, false, 0, team_, tag(0), 0};
  Message message(tag(0), bytes);
  ASSERT_NO_FATAL_FAILURE(begin(rts));
  message.receive(*channel_);
  Script().add(rts).say(peer_);
  expect_end("rank 0 sent RTS twice for a message");
}

TEST_F(TcpReceiving, MoreAnnouncedThanAnyPlanHas) {
  constexpr uint32_t most = 1 << 18, at_a_time = 1 << 10;
  for (uint32_t first = 0; first < most; first += at_a_time) {
    Script some;
    for (uint32_t i = 0; i < at_a_time; ++i) {
      some.add({FrameType::rts, false, 0, team_, tag(first + i), 0});
    }
    Message behind({3, first, 0, 0}, 0);
    behind.receive(*other_);
    some.add({FrameType::data, true, 0, alive_, {3, first, 0, 0}, 0}).say(peer_);
    ASSERT_TRUE(done_in(behind, seconds(120)));
  }
  EXPECT_FALSE(keeps_reading_.done()) << keeps_reading_.why();
  Script().add({FrameType::rts, false, 0, team_, tag(most), 0}).say(peer_);
  expect_end("rank 0 sent RTS for more messages than 262144 that no receive awaits");
}

// A peer that is ahead: it sends for teams that this process has not opened yet.
class TcpAhead : public TcpReceiving {
 protected:
  static constexpr uint32_t messages = 3;            // for each team: a window
  static constexpr size_t limit = size_t{64} << 20;  // with so small a window

  static TeamId ahead(uint32_t number) { return {Ranks::process(0), 1000 + number}; }
  // Sends those of so many teams. The endpoint reads all of it, or its link ends.
  void send(uint32_t first, uint32_t teams) {
    constexpr uint32_t at_a_time = 50;
    for (uint32_t at = first; at < first + teams && !keeps_reading_.done(); at += at_a_time) {
      Script some;
      for (uint32_t team = at; team < at + at_a_time; ++team) {
        for (uint32_t i = 0; i < messages; ++i) {
          Frame frame = data(bytes, i);
          frame.team = ahead(team);
          some.add(frame);
        }
      }
      Message behind({3, at, 0, 0}, 0);
      behind.receive(*other_);
      some.add({FrameType::data, true, 0, alive_, {3, at, 0, 0}, 0}).say(peer_);
      ASSERT_TRUE(done_in(behind, seconds(120)));
    }
  }
  // Opens them, and receives what has come.
  void receive(uint32_t first, uint32_t teams) {
    for (uint32_t team = first; team < first + teams; ++team) {
      const auto channel = open(ahead(team));
      for (uint32_t i = 0; i < messages; ++i) {
        Message message(tag(i), bytes);
        message.receive(*channel);
        ASSERT_TRUE(message.ok() && message.holds_pattern()) << message.why();
      }
    }
  }
};

TEST_F(TcpAhead, ByThousandsOfTeamsAgainAndAgain) {
  constexpr uint32_t teams = 2500;
  for (uint32_t round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(send(round * teams, teams));
    ASSERT_NO_FATAL_FAILURE(receive(round * teams, teams));
  }
  EXPECT_GT(4 * teams * messages * bytes, limit);
  EXPECT_FALSE(keeps_reading_.done()) << keeps_reading_.why();
}

// What a team takes once it is open does not count.
TEST_F(TcpAhead, InTeamsThatAreOpen) {
  constexpr uint32_t teams = 2500;
  std::vector<std::unique_ptr<Channel>> channels;
  for (uint32_t team = 0; team < 3 * teams; ++team) channels.push_back(open(ahead(team)));
  ASSERT_NO_FATAL_FAILURE(send(0, 3 * teams + 100));
  EXPECT_FALSE(keeps_reading_.done()) << keeps_reading_.why();
}

TEST_F(TcpAhead, ByMoreThanThisProcessKeepsForIt) {
  const auto most = static_cast<uint32_t>(limit / (messages * bytes));
  ASSERT_NO_FATAL_FAILURE(send(0, most));
  expect_end("rank 0 sent more than 67108864 bytes for teams that this process has not opened");
}

// Also of teams that get no message.
TEST_F(TcpAhead, ByMoreTeamsThanThisProcessKeepsForIt) {
  constexpr uint32_t at_a_time = 1 << 10;
  uint32_t teams = 0;
  while (teams < limit / 256 && !keeps_reading_.done()) {
    Script some;
    for (uint32_t i = 0; i < at_a_time; ++i) {
      some.add({FrameType::rts, false, 0, ahead(teams++), tag(0), 0});
    }
    Message behind({3, teams, 0, 0}, 0);
    behind.receive(*other_);
    some.add({FrameType::data, true, 0, alive_, {3, teams, 0, 0}, 0}).say(peer_);
    ASSERT_TRUE(done_in(behind, seconds(120)));
  }
  EXPECT_GT(teams, 10'000U);
  expect_end("rank 0 sent more than 67108864 bytes for teams that this process has not opened");
}

TEST_F(TcpReceiving, SentTwice) {
  Script().add(data(100)).add(data(100)).say(peer_);
  expect_end("rank 0 sent a message twice");
}

// A message that is posted or buffered when its team's channel is closed is dropped. The next
// team's stream, or other memory, may then be at the closed channel's address; neither may be
// touched.
TEST_F(TcpReceiving, ItsChannelIsClosed) {
  for (const bool posted : {true, false}) {
    const uint32_t number = posted ? 10 : 11;
    const TeamId closed{Ranks::process(0), number}, next{Ranks::process(0), number + 10};
    Frame frame = data(bytes);
    frame.team = closed;
    auto channel = open(closed);
    {
      Message message(tag(0), bytes);
      if (posted) message.receive(*channel);
      ASSERT_NO_FATAL_FAILURE(begin(frame));
      EXPECT_FALSE(message.done());
    }
    channel.reset();
    const auto opened = open(next);
    const std::vector<std::byte> fresh(bytes);
    ASSERT_NO_FATAL_FAILURE(end(frame));
    EXPECT_EQ(std::ranges::count(fresh, std::byte{0}), bytes);
    Message message(tag(1), 8);
    message.send(*opened);
    const Frame heard = hear(peer_);
    EXPECT_EQ(heard.team, next);
    EXPECT_EQ(heard.credit(), 0U);
  }
}

// The same if the team's other rank is told of an ABORT.
TEST_F(TcpReceiving, ItsTeamIsAborted) {
  for (const bool posted : {true, false}) {
    const TeamId aborted{Ranks::process(0), posted ? 10U : 11U};
    Frame frame = data(bytes);
    frame.team = aborted;
    const auto channel = open(aborted);
    {
      Message message(tag(0), bytes);
      if (posted) message.receive(*channel);
      ASSERT_NO_FATAL_FAILURE(begin(frame));
      channel->abort("enough");
    }
    const Frame heard = hear(peer_);
    EXPECT_EQ(heard.type, FrameType::abort);
    EXPECT_EQ(heard.team, aborted);
    ASSERT_NO_FATAL_FAILURE(end(frame));
  }
}

}  // namespace
}  // namespace sluice
