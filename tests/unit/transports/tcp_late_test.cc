// SPDX-License-Identifier: BSD-3-Clause
//
// Peers that are slow to prove who they are, and many that come at once to a process that is late.
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_proved.h"
#include "tests/unit/transports/wiretap.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TcpOptions with_deadline(milliseconds limit) {
  TcpOptions options;
  options.prover = std::make_shared<PoorProver>();
  options.connect_timeout = limit;
  options.interfaces = "127.0.0.0/8";
  return options;
}

class TcpTwoConnections : public TcpProved {
 protected:
  TcpTwoConnections() : TcpProved(with_deadline(milliseconds(400))) {}
  // The endpoint looks after its links while this time passes.
  void look_around(Message& message, milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!message.done() && std::chrono::steady_clock::now() < until) {
      endpoint_->wait(milliseconds(10));
      endpoint_->progress();
    }
  }
  const milliseconds deadline_ = options_.connect_timeout;
};

// A peer connects at two addresses, chooses one, and is slow: this process gives up the other
// first. The peer comes again.
TEST_F(TcpTwoConnections, OfWhichThisProcessGivesUpOneAreNotThePeersEnd) {
  Message message({1, 0, 0, 0}, 8);
  message.receive(*channel_);
  Stranger chosen(blob_.entries.front());
  chosen.say(asked());
  EXPECT_TRUE(hear_answer(chosen));
  {
    Stranger other(blob_.entries.front());
    other.say(asked());
    EXPECT_TRUE(hear_answer(other));
  }
  EXPECT_TRUE(wait_for(
      *endpoint_, [&] { return chosen.sent_away(); }, seconds(5)));
  look_around(message, 3 * deadline_);
  EXPECT_FALSE(message.done()) << message.why();
  expect_welcome();
}

// Of both the peer was the first to go.
TEST_F(TcpTwoConnections, ThatThePeerLeavesAreItsEnd) {
  Message message({1, 0, 0, 0}, 8);
  message.receive(*channel_);
  {
    Stranger one(blob_.entries.front()), other(blob_.entries.front());
    for (Stranger* each : {&one, &other}) each->say(asked());
    for (Stranger* each : {&one, &other}) EXPECT_TRUE(hear_answer(*each));
  }
  ASSERT_TRUE(done_in(message, seconds(30)));
  EXPECT_NE(message.why().find("ended before it had proved itself"), std::string::npos)
      << message.why();
}

// The network resets the first connection when rank 1 has answered, and rank 0 has sent its last
// proof. What both say of it is that, though rank 0 looks for another, in clear, and is refused.
TEST(TcpLastProofs, ThatAResetHasTakenAreNamedOnBothSides) {
  for (const bool filters : {false, true}) {
    TcpOptions options = with_deadline(milliseconds(400));
    if (filters) options.filter = std::make_shared<SlowFilters>(1);
    Ranks ranks(tcp(options), 2);
    AddressBlob blob = address_of(ranks.at(1));
    Wiretap tap(blob.entries.front());
    tap.reset_after(Greeting::bytes_with_proof);
    blob.entries = {tap.entry()};
    const auto channel =
        ranks.at(0).open({Ranks::process(0), 1}, {Ranks::process(1), blob.encode(), "rank 1"});
    ASSERT_TRUE(channel.ok());
    Message here({1, 0, 0, 0}, 8), there({1, 0, 0, 0}, 8);
    here.receive(**channel);
    there.receive(ranks.channel(1, 0));
    ASSERT_TRUE(ranks.drive([&] {
      tap.pass_on();
      return here.done() && there.done();
    }));
    EXPECT_NE(here.why().find("is gone: Connection reset by peer"), std::string::npos)
        << here.why();
    EXPECT_NE(there.why().find("before it had proved itself: Connection reset by peer"),
              std::string::npos)
        << there.why();
  }
}

// The peers of a rank that is late come all at once, each at two addresses, and are slow, too.
class TcpCrowd : public TcpProved {
 protected:
  TcpCrowd() : TcpProved(with_deadline(seconds(20))) {}
};

TEST_F(TcpCrowd, OfPeersIsAnsweredAtOnce) {
  constexpr size_t count = 50;
  std::vector<Peer> peers;
  for (size_t i = 0; i < count; ++i) {
    peers.push_back(peer());
    peers.back().process.low -= i;
  }
  const auto met = endpoint_->expect(peers);
  Message message({1, 0, 0, 0}, 8);
  message.receive(*channel_);
  std::vector<std::unique_ptr<Stranger>> all;
  for (size_t i = 0; i < 2 * count; ++i) {
    all.push_back(std::make_unique<Stranger>(blob_.entries.front()));
    all.back()->say(asked(peers[i % count].process));
  }
  testing::internal::CaptureStderr();
  for (const auto& each : all) EXPECT_TRUE(hear_answer(*each));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("turned away"), std::string::npos) << said;
  EXPECT_FALSE(message.done()) << message.why();
}

}  // namespace
}  // namespace sluice
