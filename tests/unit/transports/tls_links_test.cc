// SPDX-License-Identifier: BSD-3-Clause
//
// Links with encryption: what their greetings say, and who gets no further.
#include "tests/unit/transports/tcp_proved.h"
#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

TcpOptions with_tls(bool has_tls = true) {
  TcpOptions options;
  if (!has_tls || !describe_tls(tls_options().folder).ok()) return options;
  options.filter = tls_filters();
  options.prover = tls_prover();
  return options;
}

class TlsLinks : public TcpProved {
 protected:
  explicit TlsLinks(const TcpOptions& options = with_tls()) : TcpProved(options) {}
  void SetUp() override {
    if (!options_.filter) GTEST_SKIP() << "built without OpenSSL?";
  }
};

TEST_F(TlsLinks, RefuseAPeerInClear) {
  Stranger stranger(blob_.entries.front());
  stranger.say(greeting());
  EXPECT_TRUE(is_turned_away(stranger));
  Message message({1, 0, 0, 0}, 8);
  message.receive(*channel_);
  Greeting words = asked();
  words.filters = false;
  words.key = *first_proof(*options_.prover, pair_key(), words);
  Stranger peer(blob_.entries.front());
  peer.say(words);
  const auto answer = hear_answer(peer);
  ASSERT_TRUE(answer);
  peer.say(last(words, *answer).data(), proof_bytes);
  ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_NE(message.why().find("rank 0 wants a connection in clear"), std::string::npos)
      << message.why();
}

// It has proved itself, and then sends what is no handshake.
TEST_F(TlsLinks, FailTheHandshakeWithoutTheKey) {
  Message message({1, 1, 0, 0}, 8);
  message.receive(*channel_);
  Stranger peer(blob_.entries.front());
  introduce(peer);
  Script().add(data(8, 1)).say(peer);
  EXPECT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_NE(message.why().find("rank 0"), std::string::npos) << message.why();
  EXPECT_NE(message.why().find("TLS: handshake: "), std::string::npos) << message.why();
}

class TlsDeadlines : public TlsLinks {
 protected:
  static TcpOptions quick() {
    TcpOptions options = with_tls();
    options.connect_timeout = std::chrono::milliseconds(300);
    return options;
  }
  TlsDeadlines() : TlsLinks(quick()) {}
};

// A peer may begin late, but not stop in between.
TEST_F(TlsDeadlines, EndsAHandshakeThatStalls) {
  Message message({1, 0, 0, 0}, 8);
  message.receive(*channel_);
  Stranger peer(blob_.entries.front());
  introduce(peer);
  EXPECT_FALSE(wait_for(
      *endpoint_, [&] { return message.done(); }, std::chrono::seconds(2)))
      << message.why();
  peer.say("\x16\x03\x01", 3);
  ASSERT_TRUE(done_in(message, std::chrono::seconds(20)));
  EXPECT_EQ(message.code(), Code::timeout);
  EXPECT_NE(message.why().find("the handshake with rank 0 came to a halt"), std::string::npos)
      << message.why();
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
  Greeting replay{wire_version, Ranks::process(0), Ranks::process(2), {}, options_.window, true};
  replay.filters = true;
  const Prover& prover = *options_.prover;
  const auto key = prover.agree(replay.from, replay.to, blob.public_key);
  replay.key = *first_proof(prover, *key, replay);
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
  Message message({1, 1, 0, 0}, 8);
  message.receive(*channel_);
  Stranger peer(blob_.entries.front());
  introduce(peer);
  peer.say("\x17\x03\x03\x00\x20garbage that is no record of TLS at all...", 44);
  EXPECT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_NE(message.why().find("the connection to rank 0 failed: TLS: "), std::string::npos)
      << message.why();
}

}  // namespace
}  // namespace sluice
