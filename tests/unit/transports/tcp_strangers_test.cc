// SPDX-License-Identifier: BSD-3-Clause
//
// What may be at the other end of a TCP connection: strangers, peers that die or break the
// protocol, and other programs at a peer's address.
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/unit/support/stopwatch.h"
#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class TcpStrangers : public testing::Test {
 protected:
  explicit TcpStrangers(const TcpOptions& options = {})
      : ranks_(tcp(options), 2), blob_(address_of(ranks_.at(1))) {}

  Stranger visit() { return Stranger(blob_.entries[0]); }

  Ranks ranks_;
  const AddressBlob blob_;
};

// Makes an endpoint accept connections: it waits for a process that never comes.
class AwaitsNobody {
 public:
  explicit AwaitsNobody(Endpoint& endpoint)
      : channel_(std::move(*endpoint.open({Ranks::process(0), 9},
                                          {{1, 1}, AddressBlob{1, {}, {}}.encode(), "nobody"}))) {
    message_.receive(*channel_);
  }

 private:
  std::unique_ptr<Channel> channel_;
  Message message_{{2, 0, 0, 0}, 1};
};

TEST_F(TcpStrangers, RandomBytes) {
  Stranger one = visit(), two = visit();
  one.say("GET / HTTP/1.0\r\n\r\n", 18);
  const std::vector<char> rubbish(100000, 'x');
  two.say(rubbish.data(), rubbish.size());
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_TRUE(one.sent_away());
  EXPECT_TRUE(two.sent_away());
}

TEST_F(TcpStrangers, WhoDoesNotKnowTheKeyOrTheProcess) {
  Key wrong = blob_.key;
  wrong[15] ^= std::byte{1};
  Stranger one = visit(), two = visit();
  one.say(Greeting{wire_version, Ranks::process(0), Ranks::process(1), wrong, 1 << 20});
  two.say(Greeting{wire_version, Ranks::process(0), Ranks::process(7), blob_.key, 1 << 20});
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_TRUE(one.sent_away());
  EXPECT_TRUE(two.sent_away());
}

constexpr milliseconds quickly{300};

TcpOptions quick() {
  TcpOptions options;
  options.connect_timeout = quickly;
  return options;
}

// They have a short time to greet.
class TcpSilence : public TcpStrangers {
 protected:
  TcpSilence() : TcpStrangers(quick()) {}
};

TEST_F(TcpSilence, WhoSaysNothingOrHalf) {
  const auto begin = Clock::now();
  Stranger silent = visit(), half = visit();
  const Greeting greeting{wire_version, Ranks::process(0), Ranks::process(1), blob_.key, 1 << 20};
  half.say(greeting, 40);
  ASSERT_TRUE(exchange(ranks_));
  const bool sent_away = silent.sent_away();
  EXPECT_TRUE(!sent_away || Clock::now() - begin > quickly) << "has some time";
  const AwaitsNobody waits(ranks_.at(1));
  EXPECT_TRUE(ranks_.drive([&] { return silent.sent_away() && half.sent_away(); }))
      << "silent: " << silent.sent_away() << ", half: " << half.sent_away();
}

TEST_F(TcpStrangers, ACrowd) {
  const size_t before = descriptors().size();
  std::vector<Stranger> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(visit());
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_LT(descriptors().size() - before - crowd.size(), 40U);
}

// However many come, others get their turn between.
TEST_F(TcpStrangers, AFloodIsTurnedAwayInTurns) {
  const AwaitsNobody waits(ranks_.at(1));
  std::vector<Stranger> flood;
  for (int i = 0; i < 400; ++i) {
    flood.push_back(visit());
    flood.back().say("GET / HTTP/1.0\r\n\r\n", 18);
  }
  const auto gone = [&] { return std::ranges::count_if(flood, &Stranger::sent_away); };
  ranks_.at(1).progress();
  EXPECT_LT(gone(), 50);
  EXPECT_TRUE(ranks_.drive([&] { return gone() == 400; }));
}

TEST_F(TcpStrangers, ACrowdTakesNoPeersDescriptors) {
  ranks_.channel(0, 1);
  ranks_.channel(1, 0);
  std::vector<Stranger> crowd;
  for (int i = 0; i < 60; ++i) crowd.push_back(visit());
  const FewDescriptors few(4);
  EXPECT_TRUE(exchange(ranks_));
}

TEST_F(TcpStrangers, StrangersMakeRoomForAConnectionOfOurs) {
  Ranks ranks(tcp(), 3);
  Channel &here = ranks.channel(1, 2), &there = ranks.channel(2, 1);
  const AddressBlob at = address_of(ranks.at(1));
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 10; ++i) crowd.push_back(std::make_unique<Stranger>(at.entries[0]));
  const AwaitsNobody waits(ranks.at(1));
  ranks.drive_a_while();
  Message out({1, 0, 0, 0}, 8), in({1, 0, 0, 0}, 8);
  FewDescriptors few(0);
  out.send(here);
  EXPECT_FALSE(out.done() && !out.ok()) << out.why();
  few.give_one();
  in.receive(there);
  EXPECT_TRUE(ranks.drive([&] { return in.ok() && out.ok(); })) << in.why() << out.why();
}

TEST_F(TcpStrangers, NoDescriptorsAreNeededWhileNobodyComes) {
  Message message({1, 0, 0, 0}, 8);
  message.receive(ranks_.channel(1, 0));
  {
    const FewDescriptors few(0);
    for (int i = 0; i < 20; ++i) ranks_.at(1).progress();
  }
  EXPECT_FALSE(message.done()) << message.why();
}

TEST_F(TcpPlayed, AnswersWithThePeersKey) {
  Stranger peer(blob_.entries[0]);
  peer.say(greeting());
  say(peer, data(4));
  peer.say("abcd", 4);
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok()) << message.why();
  std::byte answer[Greeting::bytes];
  ASSERT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
  Greeting back;
  ASSERT_TRUE(back.decode(answer));
  EXPECT_EQ(back.from, Ranks::process(1));
  EXPECT_EQ(back.to, Ranks::process(0));
  EXPECT_EQ(back.key, key_);
}

// Death after so many bytes of a frame with 100 bytes of payload.
class TcpDeath : public TcpPlayed, public testing::WithParamInterface<size_t> {};

TEST_P(TcpDeath, WithoutGoodbyeIsNoticedAtOnce) {
  auto peer = std::make_unique<Stranger>(blob_.entries[0]);
  peer->say(greeting());
  std::array<std::byte, Frame::bytes + 100> bytes{};
  data(100).encode(bytes.data());
  peer->say(bytes.data(), GetParam());
  Message message({1, 0, 0, 0}, 100), other({1, 1, 0, 0}, 100), later({1, 2, 0, 0}, 100);
  message.receive(*channel_);
  other.receive(*channel_);
  progress_a_while();
  EXPECT_FALSE(message.done());
  peer.reset();
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::peer_lost);
  EXPECT_NE(message.why().find("rank 0 broke (Connection reset by peer), and no other"),
            std::string::npos)
      << message.why();
  EXPECT_EQ(other.code(), Code::peer_lost);
  later.send(*channel_);
  EXPECT_EQ(later.code(), Code::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(Cut, TcpDeath, testing::Values(0, 20, Frame::bytes, Frame::bytes + 50));

// A greeting with that version and window and what follows it end the link, with these words.
struct Breach {
  const char* name;
  uint16_t version;
  uint64_t window;
  std::string then;
  Code code;
  std::vector<std::string> words;
};

std::string bytes_of(const Frame& frame) {
  std::byte bytes[Frame::bytes];
  frame.encode(bytes);
  return {reinterpret_cast<const char*>(bytes), sizeof(bytes)};
}

const size_t usual = TcpOptions().window;
const Frame too_long{FrameType::data,        true,         static_cast<uint32_t>(usual),
                     {Ranks::process(0), 1}, {1, 0, 0, 0}, 0};
const Breach breaches[] = {
    {"AnotherWindow", wire_version, 4711, "", Code::mismatch, {"4711", std::to_string(usual)}},
    {"AnotherVersion", 99, usual, "", Code::mismatch, {"99"}},
    {"MoreThanTheWindow", wire_version, usual, bytes_of(too_long), Code::internal, {"window"}},
    {"NoFrame", wire_version, usual, std::string(Frame::bytes, 'x'), Code::internal, {}},
};

class TcpBreaches : public TcpPlayed, public testing::WithParamInterface<Breach> {};

TEST_P(TcpBreaches, EndTheLink) {
  const Breach& breach = GetParam();
  Greeting words = greeting();
  words.version = breach.version;
  words.window = breach.window;
  Stranger peer(blob_.entries[0]);
  peer.say(words);
  if (!breach.then.empty()) peer.say(breach.then.data(), breach.then.size());
  Message message({2, 0, 0, 0}, 4);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), breach.code);
  for (const std::string& word : breach.words) {
    EXPECT_NE(message.why().find(word), std::string::npos) << message.why();
  }
  std::byte answer[Greeting::bytes];  // which tells the peer
  ASSERT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
}

INSTANTIATE_TEST_SUITE_P(By, TcpBreaches, testing::ValuesIn(breaches),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(TcpPlayed, OddBytesAtATime) {
  Stranger peer(blob_.entries[0]);
  std::vector<std::byte> bytes(Greeting::bytes + 3 * (Frame::bytes + 10000));
  greeting().encode(bytes.data());
  Messages messages;
  for (uint32_t i = 0; i < 3; ++i) {
    std::byte* const at = bytes.data() + Greeting::bytes + i * (Frame::bytes + 10000);
    data(10000, i).encode(at);
    const Message pattern({1, i, 0, 0}, 10000);
    for (size_t j = 0; j < 10000; ++j) at[Frame::bytes + j] = pattern.expected(j);
    add(messages, {1, i, 0, 0}, 10000, 3).receive(*channel_);
  }
  std::mt19937 random(7);
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - at, 1 + random() % 997);
    peer.say(bytes.data() + at, size);
    at += size;
    endpoint_->progress();
  }
  ASSERT_TRUE(wait_for(*endpoint_, [&] { return Ranks::all_done(messages); }));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

// A window of 10,000 bytes: three messages of 3,000 bytes with their headers.
class TcpWindow : public TcpPlayed {
 protected:
  TcpWindow() : TcpPlayed(small()), peer_(blob_.entries[0]) { greet(peer_); }

  static TcpOptions small() {
    TcpOptions options;
    options.window = 10000;
    return options;
  }
  static constexpr size_t bytes = 3000;
  Stranger peer_;
};

TEST_F(TcpWindow, WhatIsPlacedIsCreditedOnceItIsHalf) {
  Messages messages;
  for (uint32_t i = 0; i < 2; ++i) {
    say(peer_, data(bytes, i));
    peer_.say(std::string(bytes, 'x').data(), bytes);
    add(messages, {1, i, 0, 0}, bytes).receive(*channel_);
  }
  ASSERT_TRUE(wait_for(*endpoint_, [&] { return Ranks::all_done(messages); }));
  const Frame credit = hear(peer_);
  EXPECT_EQ(credit.type, FrameType::credit);
  EXPECT_EQ(credit.team, team_);
  EXPECT_EQ(credit.credit(), Frame::bytes + 2 * (Frame::bytes + bytes))
      << "the token of greet() too";
}

TEST_F(TcpWindow, CreditGoesWithData) {
  Message message({1, 0, 0, 0}, 8);
  message.send(*channel_);
  EXPECT_TRUE(message.ok());
  EXPECT_EQ(hear(peer_).credit(), Frame::bytes);
}

TEST_F(TcpWindow, WhatFindsNoRoomSendsRtsAndGoesWithCreditOrCts) {
  Messages messages;
  for (uint32_t i = 0; i < 6; ++i) add(messages, {1, i, 0, 0}, bytes).send(*channel_);
  for (uint32_t i = 0; i < 3; ++i) {
    const Frame sent = hear(peer_);
    EXPECT_EQ(sent.type, FrameType::data);
    EXPECT_TRUE(sent.charged);
  }
  for (uint32_t i = 3; i < 6; ++i) {
    const Frame rts = hear(peer_);
    EXPECT_EQ(rts.type, FrameType::rts);
    EXPECT_EQ(rts.tag.ordinal, i);
  }
  progress_a_while();
  EXPECT_TRUE(messages[2]->done());
  EXPECT_FALSE(messages[3]->done());

  say(peer_, {FrameType::cts, false, 0, team_, {1, 5, 0, 0}, 0});
  ASSERT_TRUE(done_in(*messages[5], seconds(5)));
  Frame frame = hear(peer_);
  EXPECT_EQ(frame.tag.ordinal, 5U);
  EXPECT_FALSE(frame.charged);

  say(peer_, {FrameType::credit, false, 0, team_, {}, Frame::bytes + bytes});
  ASSERT_TRUE(done_in(*messages[3], seconds(5)));
  EXPECT_FALSE(messages[4]->done());
  frame = hear(peer_);
  EXPECT_EQ(frame.tag.ordinal, 3U);
  EXPECT_TRUE(frame.charged);
}

// Credit that was read together with other frames counts before wait() sleeps.
TEST_F(TcpWindow, WaitKnowsWhatHasBeenRead) {
  Messages messages;
  for (uint32_t i = 0; i < 3; ++i) add(messages, {1, i, 0, 0}, bytes).send(*channel_);
  std::byte frames[2 * Frame::bytes];
  data(0).encode(frames);
  Frame{FrameType::credit, false, 0, team_, {}, Frame::bytes + bytes}.encode(frames + Frame::bytes);
  peer_.say(frames, sizeof(frames));
  Message token({1, 0, 0, 0}, 0), waiting({1, 3, 0, 0}, bytes);
  token.receive(*channel_);
  ASSERT_TRUE(done_in(token, seconds(5)));
  waiting.send(*channel_);
  ASSERT_FALSE(waiting.done());
  endpoint_->wait(longer_than_the_watchdog);
  endpoint_->progress();
  EXPECT_TRUE(waiting.ok());
}

// A team that ended early leaves nothing behind, whatever its peer still sends.
TEST_F(TcpWindow, WhatComesForADeadTeamIsDropped) {
  const TeamId alive{Ranks::process(0), 2};
  const auto other = open(alive);
  for (const uint32_t number : {10, 11, 12}) {
    const TeamId dead{Ranks::process(0), number};
    const auto channel = open(dead);
    Message message({1, 0, 0, 0}, options_.window);  // does not end by itself
    if (number == 10) message.send(*channel);
    if (number == 11) message.receive(*channel);
    if (number < 12) continue;
    Script().add({FrameType::abort, false, 8, dead, {}, 0}).say(peer_);
    ASSERT_TRUE(wait_for(*endpoint_, [&] { return !channel->aborted_by_peer().ok(); }));
  }
  for (uint32_t i = 0; i < 30; ++i) {
    Frame frame = data(bytes, i);
    frame.team.number = 10 + i % 3;
    Script().add(frame).say(peer_);
  }
  Message message({1, 0, 0, 0}, 0);
  say(peer_, {FrameType::data, true, 0, alive, {1, 0, 0, 0}, 0});
  message.receive(*other);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok()) << message.why();
}

TEST_F(TcpWindow, WhatWasSetAsideIsCreditedOnceItIsTaken) {
  Message token({1, 2, 0, 0}, 0), first({1, 0, 0, 0}, bytes), second({1, 1, 0, 0}, bytes);
  token.receive(*channel_);
  Script().add(data(bytes, 0)).add(data(bytes, 1)).add(data(0, 2)).say(peer_);
  ASSERT_TRUE(done_in(token, seconds(5)));
  first.receive(*channel_);
  second.receive(*channel_);
  EXPECT_TRUE(first.ok() && second.ok());
  const Frame credit = hear(peer_);
  EXPECT_EQ(credit.type, FrameType::credit);
  EXPECT_EQ(credit.credit(), 2 * Frame::bytes + 2 * (Frame::bytes + bytes));
}

// A team that gave up drops all further messages, even more than a window.
TEST_F(TcpWindow, WhatComesForAnAbortedTeamIsDropped) {
  const TeamId alive{Ranks::process(0), 2};
  const auto other = open(alive);
  channel_->abort("enough");
  channel_.reset();
  Message message({1, 0, 0, 0}, 0);
  message.receive(*other);
  Script script;
  for (uint32_t i = 0; i < 10; ++i) script.add(data(bytes, i));
  script.add({FrameType::data, true, 0, alive, {1, 0, 0, 0}, 0}).say(peer_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok()) << message.why();
}

// A message that was buffered only in part when the peer left is not delivered.
TEST_F(TcpPlayed, HalfAMessageIsNone) {
  auto peer = std::make_unique<Stranger>(blob_.entries[0]);
  greet(*peer);
  Message pending({1, 0, 0, 0}, 8), half({1, 1, 0, 0}, 100);
  pending.receive(*channel_);
  Script().add(data(100, 1), 50).say(*peer);
  progress_a_while();
  peer.reset();
  ASSERT_TRUE(done_in(pending, seconds(5)));
  half.receive(*channel_);
  ASSERT_TRUE(done_in(half, seconds(5)));
  EXPECT_EQ(half.code(), Code::peer_lost);
}

// If sending fails, data that the peer sent before closing must still be read.
TEST_F(TcpPlayed, AFailedSendDoesNotHideWhatCame) {
  auto peer = std::make_unique<Stranger>(blob_.entries[0]);
  greet(*peer);
  say(*peer, data(4));
  peer->say("abcd", 4);
  say(*peer, {FrameType::bye});
  peer.reset();
  Message first({1, 0, 0, 0}, 8), second({1, 1, 0, 0}, 8), receive({1, 0, 0, 0}, 4);
  first.send(*channel_);
  std::this_thread::sleep_for(milliseconds(20));
  second.send(*channel_);  // the first got a reset
  receive.receive(*channel_);
  ASSERT_TRUE(done_in(receive, seconds(5)));
  EXPECT_TRUE(receive.ok()) << receive.why();
  EXPECT_TRUE(second.done());
  EXPECT_NE(second.why().find("finished"), std::string::npos) << second.why();
}

// The peer's address now belongs to another program, or to none.
class TcpWrongNumber : public TcpPlayedListener {
 protected:
  explicit TcpWrongNumber(const TcpOptions& options = {}) : TcpPlayedListener(options) {}
  // Accepts the connection that a message needs.
  Socket answer() {
    message_.receive(*channel_);
    return accept();
  }
};

TEST_F(TcpWrongNumber, Refused) {
  listener_.socket.close();
  message_.receive(*channel_);
  expect_end(Code::peer_lost, "127.0.0.1:" + std::to_string(listener_.port) + " over lo");
  EXPECT_NE(message_.why().find("refused"), std::string::npos) << message_.why();
}

class TcpNoAnswer : public TcpWrongNumber {
 protected:
  TcpNoAnswer() : TcpWrongNumber(quick()) {}
};

TEST_F(TcpNoAnswer, WithinTheDeadline) {
  // A full backlog drops connection attempts, like a firewall.
  ASSERT_EQ(listen(listener_.socket.fd(), 0), 0);
  std::vector<Socket> fillers;
  const SocketAddress to = to_socket_address(loopback(), listener_.port);
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(std::move(*make_socket(loopback(), {})));
    (void)!connect(fillers.back().fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size);
  }
  const auto begin = Clock::now();
  const Stopwatch watch;
  message_.receive(*channel_);
  expect_end(Code::timeout, "firewall");
  EXPECT_GE(Clock::now() - begin, milliseconds(290));
  EXPECT_TRUE(is_prompt(watch.elapsed(), seconds(2)));
}

TEST_F(TcpWrongNumber, AnotherProgram) {
  const Socket accepted = answer();
  ASSERT_EQ(send(accepted.fd(), "220 mail ready\r\n", 16, MSG_NOSIGNAL), 16);
  expect_end(Code::peer_lost, "an invalid answer");
}

TEST_F(TcpWrongNumber, WhoDoesNotKnowTheKey) {
  const Socket accepted = answer();
  say(accepted, {wire_version, peer_, self_, {}, options_.window});
  expect_end(Code::peer_lost);
}

TEST_F(TcpWrongNumber, ClosedAtOnce) {
  Socket accepted = answer();
  listener_.socket.close();
  accepted.close();
  expect_end(Code::peer_lost);
}

// Its answers may be lost. It is tried again, but not for ever.
TEST_F(TcpNoAnswer, ClosedAndSilentSince) {
  answer().close();
  expect_end(Code::unavailable, "it closed a connection, and answers on no other");
}

}  // namespace
}  // namespace sluice
