// SPDX-License-Identifier: BSD-3-Clause
//
// Links with encryption: what their greetings say, and who gets no further.
#include "tests/unit/transports/tcp_played.h"
#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

TcpOptions with_tls(bool has_tls = true) {
  TcpOptions options;
  if (has_tls && describe_tls(tls_options().folder).ok()) options.filter = tls_filters();
  return options;
}

class TlsLinks : public TcpPlayed {
 protected:
  TlsLinks() : TcpPlayed(with_tls()) {}
  void SetUp() override {
    if (!options_.filter) GTEST_SKIP() << "built without OpenSSL?";
  }
  Greeting proved() const {
    Greeting made = greeting();
    made.key = *options_.filter->prove(blob_.key, made.from, made.to);
    return made;
  }
  // What the endpoint answers to this greeting.
  Greeting answer_to(const Greeting& words) {
    Message message({1, 0, 0, 0}, 8);
    message.receive(*channel_);
    peer_ = std::make_unique<Stranger>(blob_.entries.front());
    peer_->say(words);
    progress_a_while();
    std::byte bytes[Greeting::bytes];
    Greeting answer;
    EXPECT_EQ(recv(peer_->fd(), bytes, sizeof(bytes), MSG_DONTWAIT), ssize_t{Greeting::bytes});
    EXPECT_TRUE(answer.decode(bytes));
    if (message.done()) why_ = message.why();
    return answer;
  }

  std::unique_ptr<Stranger> peer_;
  std::string why_;  // the receive's error
};

TEST_F(TlsLinks, AnswerAProofWithAProof) {
  const Greeting answer = answer_to(proved());
  EXPECT_EQ(answer.key, *options_.filter->prove(key_, Ranks::process(1), Ranks::process(0)));
  EXPECT_EQ(why_, "");
}

TEST_F(TlsLinks, RefuseAPeerInClear) {
  const Greeting answer = answer_to(greeting());
  EXPECT_NE(answer.key, key_);
  EXPECT_NE(why_.find("rank 0 wants a connection in clear"), std::string::npos) << why_;
}

// Who replays a greeting is answered, if the peer itself has not connected yet, but gets no
// further.
TEST_F(TlsLinks, AReplayedGreetingFailsTheHandshake) {
  (void)answer_to(proved());
  Message message({1, 1, 0, 0}, 8);
  message.receive(*channel_);
  Script().add(data(8, 1)).say(*peer_);
  EXPECT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_NE(message.why().find("rank 0"), std::string::npos) << message.why();
  EXPECT_NE(message.why().find("TLS: handshake: "), std::string::npos) << message.why();
}

TEST_F(TlsLinks, CloseConnectionsWithoutTheKeyOrForAnotherProcess) {
  Greeting wrong = proved();
  wrong.key[3] ^= std::byte{1};
  Greeting reflected = proved();
  reflected.key = *options_.filter->prove(blob_.key, reflected.to, reflected.from);
  Greeting other = proved();
  other.from.low += 5;
  for (const Greeting& each : {wrong, reflected, other}) {
    Message message({1, 0, 0, 0}, 8);
    message.receive(*channel_);
    Stranger stranger(blob_.entries.front());
    stranger.say(each);
    progress_a_while();
    EXPECT_TRUE(stranger.sent_away());
    EXPECT_FALSE(message.done());
  }
}

TEST_F(TlsLinks, SaySoIfOneSideHasNoEncryption) {
  for (const size_t with : {0, 1}) {
    Ranks ranks(
        [&](const ProcessId& self) { return tcp(with_tls(self == Ranks::process(with)))(self); },
        2);
    Messages messages;
    add(messages, {1, 0, 0, 0}, 8).fill().send(ranks.channel(0, 1));
    add(messages, {1, 0, 0, 0}, 8).receive(ranks.channel(1, 0));
    EXPECT_TRUE(ranks.drive([&] { return messages[with]->done(); }));
    EXPECT_FALSE(messages[with]->ok());
    EXPECT_FALSE(messages[1]->ok());
  }
}

// Rank 0 has connected to rank 2, which waits for rank 1, when strangers come.
TEST_F(TlsLinks, StrangersDoNotDisturbALink) {
  Ranks ranks(tcp(with_tls()), 3);
  Messages messages;
  const auto carry = [&](size_t from, uint32_t call) {
    add(messages, {call, 0, 0, 0}, 50000).fill().send(ranks.channel(from, 2));
    add(messages, {call, 0, 0, 0}, 50000).receive(ranks.channel(2, from));
  };
  carry(0, 1);
  ASSERT_TRUE(ranks.drive(messages));
  const AddressBlob blob = address_of(ranks.at(2));
  Greeting replay{wire_version, Ranks::process(0), Ranks::process(2), {}, options_.window};
  replay.key = *options_.filter->prove(blob.key, replay.from, replay.to);
  Stranger again(blob.entries.front()), half(blob.entries.front()), garbage(blob.entries.front());
  again.say(replay);
  half.say(replay, 30);
  garbage.say("GET / HTTP/1.1", 14);
  Message late({2, 0, 0, 0}, 50000);
  late.receive(ranks.channel(2, 1));
  EXPECT_TRUE(ranks.drive([&] { return again.sent_away() && garbage.sent_away(); }));
  Message sent({2, 0, 0, 0}, 50000);
  sent.fill().send(ranks.channel(1, 2));
  carry(0, 3);
  ASSERT_TRUE(ranks.drive([&] { return Ranks::all_done(messages) && late.done() && sent.done(); }));
  EXPECT_TRUE(late.ok() && late.holds_pattern()) << late.why();
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
  EXPECT_STREQ(ranks.channel(0, 2).carrier(), "tls");
}

TEST_F(TlsLinks, AnErrorOnTheWireNamesThePeer) {
  (void)answer_to(proved());
  Message message({1, 1, 0, 0}, 8);
  message.receive(*channel_);
  peer_->say("\x17\x03\x03\x00\x20garbage that is no record of TLS at all...", 44);
  EXPECT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_NE(message.why().find("the connection to rank 0 failed: TLS: "), std::string::npos)
      << message.why();
}

}  // namespace
}  // namespace sluice
