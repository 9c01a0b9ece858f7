// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that the answering side makes (transports/tcp/meeting.h): an invitation, and the
// asking side's greeting over it.
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_played.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TcpOptions options_for(bool proves) {
  TcpOptions options;
  options.peer_timeout = milliseconds(500);
  options.connect_timeout = seconds(60);
  options.interfaces = "127.0.0.0/8";
  options.dial_after = milliseconds(50);
  if (proves) options.prover = std::make_shared<PoorProver>();
  return options;
}

// Ranks 0 and 1, which do not know that they are on one host. Rank 0 asks.
class TcpBothDial : public testing::TestWithParam<bool> {
 protected:
  TcpBothDial() : ranks_(tcp(options_for(GetParam())), 2) {}

  // From a rank to the other, at its address or behind a wall.
  std::unique_ptr<Channel> open(size_t from, const Silent* wall) {
    const size_t to = 1 - from;
    AddressBlob blob = address_of(ranks_.at(to));
    blob.host = 0;
    if (wall != nullptr) blob.entries = {wall->entry()};
    auto opened = ranks_.at(from).open({Ranks::process(0), 1},
                                       {Ranks::process(to), blob.encode(), Ranks::label(to)});
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  void expect_exchange(Channel& of_0, Channel& of_1) {
    Messages messages;
    for (uint32_t call = 1; call < 4; ++call) {
      add(messages, {call, 0, 0, 0}, 1000).fill().send(of_0);
      add(messages, {call, 0, 0, 0}, 1000).receive(of_1);
      add(messages, {call, 1, 0, 0}, 1000).fill().send(of_1);
      add(messages, {call, 1, 0, 0}, 1000).receive(of_0);
    }
    ASSERT_TRUE(ranks_.drive(messages));
    for (auto& each : messages) EXPECT_TRUE(each->ok() && each->holds_pattern()) << each->why();
  }

  Ranks ranks_;
};

TEST_P(TcpBothDial, IfOnlyTheAnsweringSidePasses) {
  const Silent wall;
  const auto of_0 = open(0, &wall), of_1 = open(1, nullptr);
  expect_exchange(*of_0, *of_1);
}

TEST_P(TcpBothDial, IfOnlyTheAskingSidePasses) {
  const Silent wall;
  const auto of_0 = open(0, nullptr), of_1 = open(1, &wall);
  expect_exchange(*of_0, *of_1);
}

// Rank 0 comes late, and finds an invitation.
TEST_P(TcpBothDial, IfTheAskingSideIsLate) {
  const auto of_0 = open(0, nullptr), of_1 = open(1, nullptr);
  Message early({9, 0, 0, 0}, 8);
  early.fill().send(*of_1);
  for (int i = 0; i < 80; ++i) {
    ranks_.at(1).wait(milliseconds(10));
    ranks_.at(1).progress();
  }
  EXPECT_FALSE(early.done());
  Message taken({9, 0, 0, 0}, 8);
  taken.receive(*of_0);
  ASSERT_TRUE(ranks_.drive([&] { return early.done() && taken.done(); }));
  EXPECT_TRUE(early.ok() && taken.ok() && taken.holds_pattern()) << early.why() << taken.why();
  expect_exchange(*of_0, *of_1);
}

// What the answering side has to say arrives although the asking side needs no connection.
TEST_P(TcpBothDial, IfTheAskingSideNeedsNothing) {
  const Silent wall;
  const auto of_0 = open(0, &wall), of_1 = open(1, nullptr);
  of_1->abort("no more");
  ASSERT_TRUE(ranks_.drive([&] {
    for (size_t rank = 0; rank < 2; ++rank) ranks_.at(rank).wait(milliseconds(1));
    return !of_0->aborted_by_peer().ok();
  }));
  EXPECT_NE(of_0->aborted_by_peer().message().find("no more"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Proofs, TcpBothDial, testing::Bool());

// An endpoint that asks, and its simulated peer, which invites.
class TcpInvited : public testing::TestWithParam<bool> {
 protected:
  explicit TcpInvited(const TcpOptions& options = options_for(GetParam()))
      : options_(options),
        endpoint_(tcp(options_)(Ranks::process(0))),
        blob_(address_of(*endpoint_)) {}

  Peer peer() const {
    const AddressBlob at = played_address(options_, 0, key_, {wall_.entry()});
    return {Ranks::process(1), at.encode(), "rank 1"};
  }
  void open() {
    auto opened = endpoint_->open({Ranks::process(0), 1}, peer());
    ASSERT_TRUE(opened.ok());
    channel_ = std::move(*opened);
  }
  PairKey pair_key() const {
    return *options_.prover->agree(Ranks::process(1), Ranks::process(0), blob_.public_key);
  }
  Greeting invitation(std::byte nonce = std::byte{1}) const {
    Greeting made{wire_version, Ranks::process(1), Ranks::process(0), blob_.key, options_.window};
    made.invites = true;
    if (!options_.prover) return made;
    made.proves = true;
    made.nonce[0] = nonce;
    made.key = *first_proof(*options_.prover, pair_key(), made);
    return made;
  }
  // What the endpoint says next; nullopt: nothing, and it has closed.
  std::optional<Greeting> hear(Stranger& peer) {
    std::array<std::byte, Greeting::bytes_with_proof> bytes{};
    const ssize_t size = options_.prover ? Greeting::bytes_with_proof : Greeting::bytes;
    ssize_t got = -1;
    EXPECT_TRUE(wait_for(*endpoint_, [&] {
      got = recv(peer.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK);
      return got == 0 || got >= size;
    }));
    Greeting heard;
    if (got < size || !heard.decode(bytes.data())) return std::nullopt;
    EXPECT_EQ(recv(peer.fd(), bytes.data(), size, 0), size);
    return heard;
  }
  // Also has a message that needs the link.
  void open_and_send() {
    open();
    message_.send(*channel_);
  }
  // What the endpoint says to an invitation; nullopt: nothing.
  std::optional<Greeting> invite(Stranger& peer, std::byte nonce = std::byte{1}) {
    peer.say(invitation(nonce));
    return hear(peer);
  }
  void expect_link(Stranger& peer, std::byte nonce = std::byte{1}) {
    const auto asked = invite(peer, nonce);
    ASSERT_TRUE(asked);
    expect_link(peer, *asked);
  }
  // Answers the endpoint's greeting, and its message.
  void expect_link(Stranger& peer, const Greeting& asked) {
    Greeting answer{wire_version, asked.to, asked.from, blob_.key, options_.window, asked.proves};
    if (asked.proves) answer.key = *second_proof(*options_.prover, pair_key(), asked, answer);
    peer.say(answer);
    Message message({1, 7, 0, 0}, 0);
    message.receive(*channel_);
    Script()
        .add({FrameType::data, true, 0, {Ranks::process(0), 1}, message.operation.tag, 0})
        .say(peer);
    EXPECT_TRUE(wait_for(*endpoint_, [&] { return message.done(); }));
    EXPECT_TRUE(message.ok()) << message.why();
  }

  const TcpOptions options_;
  const Key key_{std::byte{42}};
  const Silent wall_;
  std::unique_ptr<Endpoint> endpoint_;
  const AddressBlob blob_;
  std::unique_ptr<Channel> channel_;
  Message message_{{1, 0, 0, 0}, 8};
};

TEST_P(TcpInvited, GreetsOnTheInvitation) {
  open_and_send();
  Stranger peer(blob_.entries[0]);
  const auto asked = invite(peer);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->from, Ranks::process(0));
  EXPECT_EQ(asked->to, Ranks::process(1));
  EXPECT_FALSE(asked->invites || asked->refuses);
  expect_link(peer, *asked);
}

TEST_P(TcpInvited, ClosesALaterInvitation) {
  open_and_send();
  Stranger peer(blob_.entries[0]);
  expect_link(peer);
  testing::internal::CaptureStderr();
  Stranger late(blob_.entries[0]);
  EXPECT_FALSE(invite(late, std::byte{2}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it is no stranger";
}

// The peer may be the first to know the team.
TEST_P(TcpInvited, WaitsUntilThePeerIsKnown) {
  Stranger peer(blob_.entries[0]);
  peer.say(invitation());
  for (int i = 0; i < 20; ++i) endpoint_->wait(milliseconds(50));
  EXPECT_FALSE(peer.sent_away());
  open();
  const auto asked = hear(peer);
  ASSERT_TRUE(asked);
  expect_link(peer, *asked);
}

class TcpInvitedEarly : public TcpInvited {
 protected:
  static TcpOptions options() {
    TcpOptions made = options_for(GetParam());
    made.connect_timeout = milliseconds(300);
    return made;
  }
  TcpInvitedEarly() : TcpInvited(options()) {}
};

// The peer is a call ahead. This process knows that it is one, but not when it will need it.
TEST_P(TcpInvitedEarly, KeepsAnInvitationOfAPeerForALaterCall) {
  const std::vector<Peer> peers{peer()};
  const auto met = endpoint_->expect(peers);
  Stranger early(blob_.entries[0]);
  early.say(invitation());
  for (int i = 0; i < 30; ++i) endpoint_->wait(milliseconds(50));
  EXPECT_FALSE(early.sent_away());
  open_and_send();
  const auto asked = hear(early);
  ASSERT_TRUE(asked);
  EXPECT_FALSE(asked->invites || asked->refuses);
}

INSTANTIATE_TEST_SUITE_P(Proofs, TcpInvitedEarly, testing::Bool());

// Its link has failed: the peer, which waits, is told.
TEST_P(TcpInvited, RefusesAfterAFailure) {
  open_and_send();
  {
    Stranger peer(blob_.entries[0]);
    expect_link(peer);
  }
  Message broken({1, 1, 0, 0}, 8);
  broken.receive(*channel_);
  ASSERT_TRUE(wait_for(*endpoint_, [&] { return broken.done(); }));
  Stranger again(blob_.entries[0]);
  const Greeting words = invitation(std::byte{2});
  again.say(words);
  const auto answer = hear(again);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->refuses);
  const Key expected =
      options_.prover ? *second_proof(*options_.prover, pair_key(), words, *answer) : key_;
  EXPECT_EQ(answer->key, expected);
}

TEST_P(TcpInvited, TakesNoInvitationWithoutAKey) {
  open_and_send();
  Greeting forged = invitation(), inverted = invitation();
  forged.key[15] ^= std::byte{1};
  inverted.from.low = 1;  // it would ask, and this process answer
  for (const Greeting& each : {forged, inverted}) {
    Stranger stranger(blob_.entries[0]);
    stranger.say(each);
    EXPECT_TRUE(wait_for(*endpoint_, [&] { return stranger.sent_away(); }));
  }
  Stranger peer(blob_.entries[0]);
  expect_link(peer, std::byte{3});
}

INSTANTIATE_TEST_SUITE_P(Proofs, TcpInvited, testing::Bool());

// An endpoint that answers, and its simulated peer, which it invites.
class TcpInvites : public TcpPlayedListener, public testing::WithParamInterface<bool> {
 protected:
  TcpInvites() : TcpPlayedListener(options_for(GetParam()), 1, 0) { message_.send(*channel_); }
};

TEST_P(TcpInvites, AgainIfThatComesToNothing) {
  Greeting first, second;
  accept(&first).close();
  const Socket peer = accept(&second);
  for (const Greeting& each : {first, second}) {
    EXPECT_TRUE(each.invites);
    EXPECT_EQ(each.from, Ranks::process(1));
    EXPECT_EQ(each.to, Ranks::process(0));
    EXPECT_TRUE(options_.prover || each.key == key_);
  }
  EXPECT_FALSE(message_.done());
}

TEST_P(TcpInvites, NoMoreIfItIsRefused) {
  Greeting asked;
  const Socket peer = accept(&asked);
  say(peer, answer_to(asked, true));
  expect_end(Code::peer_lost, "cannot connect to rank 0: it has given up its connection");
}

INSTANTIATE_TEST_SUITE_P(Proofs, TcpInvites, testing::Bool());

// The peer's host lives, as the connection of another process there shows, and takes connections;
// but no invitation comes through.
TEST(TcpSwallowed, InvitationsAreNotSentWithoutEnd) {
  TcpOptions options = options_for(false);
  options.connect_timeout = milliseconds(300);
  const auto endpoint = tcp(options)(Ranks::process(1)),
             neighbour = tcp(options)(Ranks::process(2));
  const auto beside = endpoint->open({Ranks::process(0), 2},
                                     {Ranks::process(2), neighbour->address(), "rank 2", "there"});
  const auto back = neighbour->open({Ranks::process(0), 2},
                                    {Ranks::process(1), endpoint->address(), "rank 1", "here"});
  Message hello({1, 0, 0, 0}, 8), heard({1, 0, 0, 0}, 8);
  hello.send(**beside);
  heard.receive(**back);
  ASSERT_TRUE(wait_for(*endpoint, [&] {
    neighbour->progress();
    return hello.done() && heard.done();
  }));
  const Listener listener = std::move(*listen_on(loopback(), {}));
  swallow({listener.socket.fd()});
  const AddressBlob blob{0, Key{std::byte{42}}, {{loopback(), 8, listener.port}}};
  const auto channel =
      endpoint->open({Ranks::process(0), 1}, {Ranks::process(0), blob.encode(), "rank 0", "there"});
  Message message({1, 0, 0, 0}, 8);
  message.send(**channel);
  ASSERT_TRUE(wait_for(*endpoint, [&] { return message.done(); }));
  EXPECT_EQ(message.code(), Code::timeout);
  EXPECT_NE(message.why().find("takes connections, but acknowledges no byte"), std::string::npos)
      << message.why();
}

}  // namespace
}  // namespace sluice
