// SPDX-License-Identifier: BSD-3-Clause
//
// Peers that end while nothing is expected of them: their connections must be closed, and teams
// that use them later must get the right error.
#include <malloc.h>

#include <atomic>

#include "tests/unit/transports/tcp_played.h"
#include "transports/shm/upgrade.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Sleeps so long that the endpoint has checked for ended peers. With a condition, repeats this
// until it holds, because the kernel may take longer to report an end.
void sleep_over_looks(Endpoint& endpoint) {
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(milliseconds(60));
    endpoint.wait(milliseconds(1));
    endpoint.progress();
  }
}
void sleep_over_looks(Endpoint& endpoint, const std::function<bool()>& holds) {
  for (int i = 0; i < 50 && !holds(); ++i) sleep_over_looks(endpoint);
}

// One process stays; others come, exchange messages in a team of their own, and finish.
class TcpComings : public testing::TestWithParam<bool> {
 protected:
  static TcpOptions options() {
    TcpOptions options;
    if (GetParam()) options.upgrades = {make_shm_upgrades()};
    return options;
  }
  // Process 50 stays. Some of the others connect to it, and it connects to the others.
  static uint64_t number(uint64_t visit) { return visit % 2 ? visit % 50 : 51 + visit; }

  TcpComings() : make_(tcp(options())), stays_(make_(Ranks::process(50))) {}

  void visit(const ProcessId& process, bool keeps_channel) {
    auto visitor = make_(process);
    const TeamId team{process, 1};
    auto here = stays_->open(team, {process, visitor->address(), "visitor"});
    auto there = visitor->open(team, {Ranks::process(50), stays_->address(), "who stays"});
    ASSERT_TRUE(here.ok() && there.ok());
    for (uint32_t call = 0; call < 6; ++call) {
      Messages messages;
      for (Channel* channel : {here->get(), there->get()}) {
        add(messages, {call, 0, 0, 0}, 100).fill().send(*channel);
        add(messages, {call, 0, 0, 0}, 100).receive(*channel);
      }
      ASSERT_TRUE(wait_for(*stays_, [&] {
        visitor->progress();
        return Ranks::all_done(messages);
      }));
      for (auto& message : messages) ASSERT_TRUE(message->ok()) << message->why();
    }
    ASSERT_STREQ((*here)->carrier(), GetParam() ? "shm" : "tcp");
    if (keeps_channel) kept_.push_back(std::move(*here));
  }

  const MakeEndpoint make_;
  std::unique_ptr<Endpoint> stays_;
  std::vector<std::unique_ptr<Channel>> kept_;
};

TEST_P(TcpComings, WhoFinishedTakesNoDescriptor) {
  const size_t before = descriptors().size();
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(visit(Ranks::process(number(i)), i % 3 == 0));
  }
  sleep_over_looks(*stays_, [&] { return descriptors().size() == before; });
  EXPECT_EQ(descriptors().size(), before);
  for (auto& channel : kept_) {
    Message late({9, 0, 0, 0}, 1);
    late.receive(*channel);
    EXPECT_EQ(late.code(), Code::peer_lost);
    EXPECT_NE(late.why().find("visitor finished"), std::string::npos) << late.why();
  }
}

// No rank need wait for this: making the next connection suffices.
TEST_P(TcpComings, ANewLinkClosesThoseThatEnded) {
  const size_t before = descriptors().size();
  for (uint64_t i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(visit(Ranks::process(number(i)), false));
    std::this_thread::sleep_for(milliseconds(110));
    EXPECT_LE(descriptors().size(), before + 1) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpComings, testing::Bool());

// The memory for ended peers must also be bounded.
TEST(TcpEnds, ThousandsLeaveLittleMemory) {
  auto stays = tcp()(Ranks::process(0));
  const auto meet = [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      auto visitor = tcp()(Ranks::process(i));
      const TeamId team{Ranks::process(0), static_cast<uint32_t>(i)};
      auto here = stays->open(team, {Ranks::process(i), visitor->address(), "visitor"});
      auto there = visitor->open(team, {Ranks::process(0), stays->address(), "stays"});
      Message hello({1, 0, 0, 0}, 8), heard({1, 0, 0, 0}, 8);
      hello.send(**here);
      heard.receive(**there);
      ASSERT_TRUE(wait_for(*stays, [&] {
        visitor->progress();
        return hello.done() && heard.done();
      }));
      there->reset();
      visitor.reset();
      here->reset();
      if (i % 100 == 0) sleep_over_looks(*stays);
    }
  };
  // Links that have ended but were not checked yet take a kilobyte each.
  const auto allocated = [&] {
    sleep_over_looks(*stays);
    return mallinfo2().uordblks;
  };
  ASSERT_NO_FATAL_FAILURE(meet(1, 400));
  const size_t before = allocated();
  ASSERT_NO_FATAL_FAILURE(meet(400, 1000));
  EXPECT_LT(allocated(), before + 20000);
}

// A process that gives a link up ends it, so that the peer does not look for another connection,
// even if it has not read everything. Until the peer has ended its side, too, a socket remains.
TEST_F(TcpPlayed, ALinkThatIsGivenUpEndsWithoutAReset) {
  const size_t before = descriptors().size();
  {
    Stranger peer(blob_.entries[0]);
    greet(peer);
    Message wanted({1, 0, 0, 0}, 8), sent({2, 0, 0, 0}, 5000);
    sent.fill().send(*channel_);
    ASSERT_TRUE(sent.ok());
    wanted.receive(*channel_);
    const std::vector<char> no_frames(200'000, 'x');
    peer.say(no_frames.data(), no_frames.size());
    ASSERT_TRUE(done_in(wanted, seconds(5)));
    ASSERT_EQ(wanted.code(), Code::internal) << wanted.why();
    EXPECT_EQ(hear(peer).length, 5000U);
    char byte;
    EXPECT_EQ(recv(peer.fd(), &byte, 1, 0), 0);
    sleep_over_looks(*endpoint_);
    EXPECT_EQ(send(peer.fd(), &byte, 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(recv(peer.fd(), &byte, 1, 0), 0) << "was reset";
  }
  sleep_over_looks(*endpoint_, [&] { return descriptors().size() == before; });
  EXPECT_EQ(descriptors().size(), before);
}

// Messages that came before the end must be delivered, also to teams opened later.
TEST_F(TcpPlayed, WhatCameBeforeAGoodbyeIsHad) {
  const TeamId later{Ranks::process(0), 2}, aborted{Ranks::process(0), 3};
  {
    Stranger peer(blob_.entries[0]);
    greet(peer);
    Script()
        .add(data(20000))
        .add({FrameType::data, true, 50000, later, {1, 0, 0, 0}, 0})
        .add({FrameType::abort, false, 8, aborted, {}, 0})
        .add({FrameType::bye})
        .say(peer);
    shutdown(peer.fd(), SHUT_WR);
    const size_t before = descriptors().size();
    sleep_over_looks(*endpoint_, [&] { return descriptors().size() < before; });
    EXPECT_EQ(descriptors().size(), before - 1);
  }
  const auto opened = open(later), over = open(aborted);
  Message first({1, 0, 0, 0}, 20000), second({1, 0, 0, 0}, 50000), none({2, 0, 0, 0}, 8),
      end({1, 0, 0, 0}, 8);
  first.receive(*channel_);
  EXPECT_TRUE(first.ok() && first.holds_pattern()) << first.why();
  none.receive(*channel_);
  EXPECT_NE(none.why().find("rank 0 finished"), std::string::npos) << none.why();
  second.receive(*opened);
  EXPECT_TRUE(second.ok() && second.holds_pattern()) << second.why();
  end.receive(*over);
  EXPECT_EQ(end.code(), Code::aborted);
}

// It is an error only for teams that have this peer.
TEST_F(TcpPlayed, AnEndWithoutAGoodbyeIsFoundLater) {
  {
    Stranger peer(blob_.entries[0]);
    greet(peer);
  }
  const size_t before = descriptors().size();
  sleep_over_looks(*endpoint_, [&] { return descriptors().size() < before; });
  EXPECT_EQ(descriptors().size(), before - 1);
  auto other = tcp()(Ranks::process(2));
  const TeamId team{Ranks::process(1), 1};
  auto here = endpoint_->open(team, {Ranks::process(2), other->address(), "rank 2"});
  const auto opened = open({Ranks::process(0), 7});
  Message fine({1, 0, 0, 0}, 8), lost({1, 0, 0, 0}, 8), new_team({1, 0, 0, 0}, 8);
  fine.send(**here);
  auto there = other->open(team, {Ranks::process(1), endpoint_->address(), "rank 1"});
  Message taken({1, 0, 0, 0}, 8);
  taken.receive(**there);
  EXPECT_TRUE(wait_for(*endpoint_, [&] {
    other->progress();
    return fine.done();
  }));
  EXPECT_TRUE(fine.ok()) << fine.why();
  lost.send(*channel_);
  EXPECT_EQ(lost.code(), Code::peer_lost);
  EXPECT_NE(lost.why().find("rank 0 is gone"), std::string::npos) << lost.why();
  new_team.receive(*opened);
  EXPECT_EQ(new_team.code(), Code::peer_lost);
}

// The link of a live peer stays unread, as usual.
TEST_F(TcpPlayed, WhoIsWellIsNotRead) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  constexpr size_t bytes = 60000;
  const auto allocated = [] { return mallinfo2().uordblks; };
  const size_t before = allocated();
  {
    Script script;
    script.add(data(bytes)).say(peer);
  }
  sleep_over_looks(*endpoint_);
  EXPECT_LT(allocated(), before + bytes / 2);
  Message message({1, 0, 0, 0}, bytes);
  message.receive(*channel_);
  EXPECT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok() && message.holds_pattern());
}

// After a receive has ended in any way, the link is not read any more.
TEST_F(TcpPlayed, WhatHasEndedIsNotReadFor) {
  constexpr uint32_t bytes = 60000;
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const auto receive = [&](uint32_t call, uint32_t length, uint32_t sent) {
    Message message({call, 0, 0, 0}, length);
    message.receive(*channel_);
    Script().add({FrameType::data, true, sent, team_, {call, 0, 0, 0}, 0}).say(peer);
    EXPECT_TRUE(done_in(message, seconds(5)));
  };
  const std::function<void()> ends[] = {
      [&] { receive(1, 8, 8); },
      [&] { receive(2, 8, 9); },
      [&] { receive(3, 20000, 9); },
      [&] {
        Message message({4, 0, 0, 7}, 8);
        message.receive(*channel_);
        Script().add({FrameType::data, true, 8, team_, {4, 0, 0, 8}, 0}).say(peer);
        EXPECT_TRUE(done_in(message, seconds(5)));
      },
      [&] {
        Message message({5, 0, 0, 0}, 20000);
        message.receive(*channel_);
        channel_->withdraw();
      },
  };
  uint32_t team = 10;
  for (const auto& end : ends) {
    SCOPED_TRACE(++team);
    end();
    const auto allocated = [] { return mallinfo2().uordblks; };
    const size_t before = allocated();
    const TeamId unwanted{Ranks::process(0), team};
    {
      Script script;
      script.add({FrameType::data, true, bytes, unwanted, {1, 0, 0, 0}, 0}).say(peer);
    }
    sleep_over_looks(*endpoint_);
    EXPECT_LT(allocated(), before + bytes / 2);
    const auto opened = open(unwanted);
    Message message({1, 0, 0, 0}, bytes);
    message.receive(*opened);
    EXPECT_TRUE(done_in(message, seconds(5)));
    EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
  }
}

}  // namespace
}  // namespace sluice
