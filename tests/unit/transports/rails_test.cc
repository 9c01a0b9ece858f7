// SPDX-License-Identifier: BSD-3-Clause
//
// Links with rails: large messages that are spread over several connections.
#include <fcntl.h>

#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/rails_rig.h"
#include "tests/unit/transports/tcp_played.h"
#include "tests/unit/transports/tls_rig.h"
#include "transports/link/spread.h"

namespace sluice {
namespace {

struct Way {
  unsigned streams;
  size_t window;
  size_t buffer;
  bool encrypts;
};

class Rails : public testing::TestWithParam<Way> {
 protected:
  Rails() : random_(static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed())) {}

  static MakeEndpoint make() {
    TcpOptions options = with(GetParam().streams, GetParam().window, GetParam().buffer);
    if (GetParam().encrypts) {
      options.filter = tls_filters();
      options.prover = tls_prover();
    }
    return tcp(options);
  }
  size_t some_size() {
    const size_t sizes[] = {0, 8, 1000, 20 * kib, 64 * kib, 100 * kib, 256 * kib, 512 * kib};
    const size_t size = sizes[random_() % std::size(sizes)];
    return size < 9 ? size : size - random_() % (size / 2);
  }

  std::mt19937_64 random_;
};

// Sends and receives in random order, from both sides, of two teams, with pieces.
TEST_P(Rails, RandomMessages) {
  if (GetParam().encrypts && !describe_tls(tls_options().folder).ok()) {
    GTEST_SKIP() << "built without OpenSSL?";
  }
  Ranks ranks(make(), 2);
  ASSERT_TRUE(GetParam().streams == 1 || make_rails(ranks, GetParam().streams));
  for (uint32_t round = 0; round < sweep(20U, 3U, 1U); ++round) {
    struct Posting {
      Message* message;
      Channel* channel;
      bool sends;
    };
    Messages messages;
    std::vector<Posting> postings;
    for (uint32_t i = 0; i < 40; ++i) {
      const size_t from = random_() % 2;
      const uint32_t team = 1 + random_() % 2;
      const Tag tag{100 * (round + 1) + i % 5, i, static_cast<uint32_t>(random_() % 2), 9};
      const size_t bytes = some_size();
      Message& send = add(messages, tag, bytes, random_() % 4).fill();
      Message& receive = add(messages, tag, bytes, random_() % 10);
      postings.push_back({&send, &ranks.channel(from, 1 - from, team), true});
      postings.push_back({&receive, &ranks.channel(1 - from, from, team), false});
    }
    std::shuffle(postings.begin(), postings.end(), random_);
    for (const Posting& each : postings) {
      each.sends ? each.message->send(*each.channel) : each.message->receive(*each.channel);
      if (random_() % 4 == 0) ranks.progress();
    }
    ASSERT_TRUE(ranks.drive(messages));
    for (auto& message : messages) {
      ASSERT_TRUE(message->ok()) << message->why();
      ASSERT_TRUE(message->holds_pattern());
    }
  }
  const std::string carrier = ranks.channel(0, 1).carrier();
  EXPECT_TRUE(
      carrier.ends_with(GetParam().streams == 1 ? "tcp" : "*" + std::to_string(GetParam().streams)))
      << carrier;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Rails,
    testing::Values(Way{1, size_t{4} << 20, 0, false}, Way{2, size_t{4} << 20, 0, false},
                    Way{3, 64 * kib, 16 * kib, false}, Way{5, 1, 0, false},  // all by rendezvous
                    Way{16, size_t{32} << 20, 0, false}, Way{4, size_t{4} << 20, 0, true},
                    Way{16, 128 * kib, 16 * kib, true}),
    [](const auto& info) {
      const Way& way = info.param;
      return std::to_string(way.streams) + "_" + std::to_string(way.window) +
             (way.encrypts ? "_tls" : "");
    });

// Many tiny pieces, which are not spread by the sender, and are copied by the receiver.
TEST(RailsPieces, ManyOnEitherSide) {
  Ranks ranks(tcp(with(4)), 2);
  ASSERT_TRUE(make_rails(ranks, 4));
  for (const auto& [sent, received] : {std::pair{1, 3000}, {3000, 1}, {3000, 3000}, {60, 60}}) {
    Messages messages;
    add(messages, {9, 0, 0, 0}, 300 * kib, static_cast<size_t>(sent))
        .fill()
        .send(ranks.channel(0, 1));
    add(messages, {9, 0, 0, 0}, 300 * kib, static_cast<size_t>(received))
        .receive(ranks.channel(1, 0));
    ASSERT_TRUE(ranks.drive(messages));
    for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
  }
}

// A probe is for links between hosts.
TEST(RailsTried, WithinAHostThereAreNone) {
  TcpOptions options = with(4);
  options.tries_streams = true;
  Ranks ranks(tcp(options), 2);
  ASSERT_TRUE(exchange(ranks));
  const size_t before = descriptors().size();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(exchange(ranks, 1, 512 * kib));
  EXPECT_EQ(descriptors().size(), before);
  EXPECT_STREQ(ranks.channel(0, 1).carrier(), "tcp");
}

// But each side says of itself what it knows of hosts: a peer may spread that is taken to be on
// this one.
TEST(RailsTried, AreReadWhateverThisSideWouldDo) {
  const auto make = [](const ProcessId& self) {
    TcpOptions options = with(2);
    options.tries_streams = self == Ranks::process(1);
    return tcp(options)(self);
  };
  Ranks ranks(make, 2);
  const std::string both = carrier_of(2);
  // (Who makes none looks for others' rarely.)
  for (int i = 0; i < 10'000 && both != ranks.channel(0, 1).carrier(); ++i) {
    ASSERT_TRUE(exchange(ranks, 1, 300 * kib));
    ranks.at(1).wait(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ranks.channel(0, 1).carrier(), both);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks, 1, 300 * kib));
}

TcpOptions with_rails(bool encrypts, unsigned streams) {
  TcpOptions options = with(streams, size_t{32} << 20);
  options.interfaces = "127.0.0.0/8";
  if (!encrypts || !describe_tls(tls_options().folder).ok()) return options;
  options.filter = tls_filters();
  options.prover = tls_prover();
  return options;
}

// In clear, or encrypted.
class IdleRails : public RailsThatEnd, public testing::WithParamInterface<bool> {
 protected:
  IdleRails() : RailsThatEnd(with_rails(GetParam(), streams)) {}
  static const char* carrier() { return GetParam() ? "tls" : "tcp"; }
  void expect_exchanges() {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks_, 1, 300 * kib));
  }
};

TEST_P(IdleRails, AreDropped) {
  if (GetParam() && !with_rails(true, 1).filter) GTEST_SKIP() << "built without OpenSSL?";
  for (const int each : {rails_[0], rails_[3]}) {
    cut(each);
    expect_exchanges();
  }
  EXPECT_NE(ranks_.channel(0, 1).carrier(), carrier() + ("*" + std::to_string(streams)));
  for (const int each : rails_) cut(each);
  expect_exchanges();
  EXPECT_STREQ(ranks_.channel(0, 1).carrier(), carrier());
  EXPECT_STREQ(ranks_.channel(1, 0).carrier(), carrier());
}

INSTANTIATE_TEST_SUITE_P(Ways, IdleRails, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "tls" : "clear"; });

// They were made for messages that are sent later, and end or break before that.
void expect_unused_rails_are_dropped(bool encrypts, Break how) {
  Ranks ranks(tcp(with_rails(encrypts, 2)), 2);
  ASSERT_TRUE(exchange(ranks));
  const std::set<int> before = descriptors();
  Messages messages;
  for (const size_t rank : {0, 1}) {
    add(messages, {2, 0, 0, 0}, 300 * kib).receive(ranks.channel(rank, 1 - rank));
  }
  ASSERT_TRUE(ranks.drive([&] {
    return std::string(ranks.channel(0, 1).carrier()).ends_with("*2") &&
           std::string(ranks.channel(1, 0).carrier()).ends_with("*2");
  }));
  for (const int each : descriptors()) {
    if (before.contains(each) || !listens_at(ranks.at(1), each, true)) continue;
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    ASSERT_EQ(how == Break::reset ? connect(each, &none, sizeof(none)) : shutdown(each, SHUT_RDWR),
              0);
  }
  for (const size_t rank : {0, 1}) {
    add(messages, {2, 0, 0, 0}, 300 * kib).fill().send(ranks.channel(rank, 1 - rank));
  }
  ASSERT_TRUE(ranks.drive(messages));
  for (auto& message : messages) {
    EXPECT_TRUE(message->ok() && message->holds_pattern()) << message->why();
  }
}

TEST(UnusedRails, AreDropped) {
  const bool has_tls = with_rails(true, 1).filter != nullptr;
  for (const Break how : {Break::shutdown, Break::reset}) {
    for (const bool encrypts : {false, has_tls}) expect_unused_rails_are_dropped(encrypts, how);
  }
}

// One network of two is down, or the peer has ended them, and this side does not know it yet.
TEST_F(RailsThatEnd, SilentOnesAreNotSentOn) {
  std::vector<std::unique_ptr<Outage>> outages;
  for (const int each : rails_) outages.push_back(std::make_unique<Outage>(each));
  for (const auto& each : outages) ASSERT_TRUE(each->await_probe());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks_, 1, 300 * kib));
  outages.resize(2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks_, 1, 300 * kib));
}

class RailsOfAWaitingRank : public RailsThatEnd {
 protected:
  static TcpOptions options() {
    TcpOptions made = with(streams, size_t{32} << 20);
    made.peer_timeout = std::chrono::seconds(3);
    return made;
  }
  RailsOfAWaitingRank() : RailsThatEnd(options()) {}
};

// One network of two is down while the peer computes, and its host answers on the other.
TEST_F(RailsOfAWaitingRank, SilentOnesAreNotWaitedFor) {
  std::vector<Socket> kept;
  std::vector<std::unique_ptr<Outage>> outages;
  for (const int each : rails_) kept.emplace_back(fcntl(each, F_DUPFD_CLOEXEC, 0));
  for (const auto& each : kept) outages.push_back(std::make_unique<Outage>(each.fd()));
  Messages messages;
  add(messages, tag(0), 100).receive(ranks_.channel(0, 1));
  const auto have_ended = [&] {
    return std::ranges::all_of(
        outages, [](const auto& each) { return each->look().tcpi_state == TCP_CLOSE; });
  };
  ASSERT_TRUE(ranks_.drive(have_ended));
  add(messages, tag(0), 100).fill().send(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
}

// The link's own connection breaks between two calls, and is made again; the rails stay.
TEST_F(RailsThatEnd, OutliveTheFirstConnection) {
  for (const size_t rank : {0U, 1U}) {
    Breaker breaker;
    const int first = end_of(ranks_, rank);  // it was made before the rails
    ASSERT_TRUE(std::ranges::all_of(rails_, [&](int rail) { return rail > first; }));
    ASSERT_TRUE(breaker.hit(ranks_, rank, Break::reset));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks_, 1, 300 * kib));
    for (const int each : rails_) EXPECT_GE(port_of(each, true), 1);
    EXPECT_EQ(std::string(ranks_.channel(0, 1).carrier()), carrier_of(streams));
  }
}

// What came over rails is lost with them: the SPREAD that comes later says so.
TEST_F(RailsThatEnd, LostPartsAreNotAwaited) {
  Message sent(tag(0), 100 * kib), received(tag(0), 100 * kib);
  sent.fill().send(ranks_.channel(0, 1));
  ASSERT_TRUE(ranks_.drive([&] { return sent.done(); }));
  for (const int each : rails_) {  // of both sides, with a reset
    const linger at_once{1, 0};
    setsockopt(each, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, each);
    close(null);
  }
  received.receive(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive([&] { return received.done(); }));
  EXPECT_EQ(received.code(), Code::peer_lost) << received.why();
}

TEST_F(RailsThatEnd, ByeWaitsForUnreadParts) {
  Message sent(tag(0), 100 * kib), received(tag(0), 100 * kib), never(tag(1), 8);
  sent.fill().send(ranks_.channel(0, 1));
  ASSERT_TRUE(sent.done());
  ranks_.leave(0);
  received.receive(ranks_.channel(1, 0));
  never.receive(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive([&] { return received.done() && never.done(); }));
  EXPECT_TRUE(received.ok() && received.holds_pattern()) << received.why();
  EXPECT_EQ(never.code(), Code::peer_lost);
  EXPECT_NE(never.why().find("finished (MPI_Finalize)"), std::string::npos) << never.why();
}

class RailsOfALeavingRank : public RailsThatEnd {
 protected:
  static TcpOptions options() {
    TcpOptions made = with(streams, size_t{32} << 20);
    made.linger = std::chrono::hours(1);  // this test's limit is shorter
    return made;
  }
  RailsOfALeavingRank() : RailsThatEnd(options()) {}
  // Bytes that have no acknowledgement.
  static int queued(const std::vector<Socket>& sockets) {
    int sum = 0;
    for (const Socket& each : sockets) {
      int left = 0;
      EXPECT_EQ(ioctl(each.fd(), SIOCOUTQ, &left), 0);
      sum += left;
    }
    return sum;
  }
};

// An outage hit the last acknowledgements. But the peer has finished, so it has all that it wants.
TEST_F(RailsOfALeavingRank, AnAcknowledgementIsNotAwaitedFromAPeerThatFinished) {
  std::vector<Socket> kept;  // of rank 0
  std::vector<std::unique_ptr<Outage>> outages;
  for (const int each : rails_) {
    if (!listens_at(ranks_.at(1), each, true)) continue;
    kept.emplace_back(fcntl(each, F_DUPFD_CLOEXEC, 0));
    outages.push_back(std::make_unique<Outage>(kept.back().fd()));
  }
  ASSERT_EQ(outages.size(), streams);
  Messages messages;
  add(messages, tag(0), 100 * kib).fill().send(ranks_.channel(0, 1));
  add(messages, tag(0), 100 * kib).receive(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive(messages));
  for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
  ranks_.leave(1);
  EXPECT_GT(queued(kept), 0);
  ranks_.leave(0);
}

TEST_F(RailsThatEnd, UnreadPartsAreReadThoughNothingIsPending) {
  Message sent(tag(0), 100 * kib), received(tag(0), 100 * kib);
  sent.fill().send(ranks_.channel(0, 1));
  ranks_.leave(0);
  const size_t before = descriptors().size();
  for (int i = 0; i < 100 && descriptors().size() == before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks_.at(1).progress();
    ranks_.at(1).wait(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(descriptors().size(), before - 1 - streams);
  received.receive(ranks_.channel(1, 0));
  EXPECT_TRUE(received.ok() && received.holds_pattern()) << received.why();
}

// After some of several messages have come.
class RailsInTheMiddle : public BusyRailsThatEnd {
 protected:
  static constexpr uint32_t count = 4;
  void begin(bool posted_first) {
    for (uint32_t i = 0; i < count; ++i) {
      add(sends_, tag(i), 900 * kib).fill().send(ranks_.channel(0, 1));
    }
    if (!posted_first) ranks_.drive_a_while();
    for (uint32_t i = 0; i < count; ++i)
      add(receives_, tag(i), 900 * kib).receive(ranks_.channel(1, 0));
    for (int i = 0; i < 3; ++i) ranks_.progress();
    EXPECT_FALSE(receives_.back()->done());
  }
  void others_go_on() {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(ranks_, 2, 400 * kib));
    EXPECT_EQ(ranks_.channel(0, 1, 2).carrier(), carrier_of(streams));
  }

  Messages sends_, receives_;
};

TEST_F(RailsInTheMiddle, TheReceiverWithdraws) {
  begin(true);
  receives_.clear();
  ranks_.close(1, 0);
  others_go_on();
}

TEST_F(RailsInTheMiddle, TheSenderWithdraws) {
  begin(true);
  sends_.clear();
  ranks_.close(0, 1);
  others_go_on();
}

TEST_F(RailsInTheMiddle, UnexpectedMessagesAreClosed) {
  for (uint32_t i = 0; i < count; ++i) {
    add(sends_, tag(i), 900 * kib).fill().send(ranks_.channel(0, 1));
  }
  Message other({1, 77, 0, 0}, 8), its({1, 77, 0, 0}, 8);
  other.send(ranks_.channel(0, 1));
  its.receive(ranks_.channel(1, 0));
  for (int i = 0; i < 5; ++i) ranks_.progress();
  its.done();
  ranks_.close(1, 0);
  others_go_on();
}

TEST_F(RailsInTheMiddle, TheSenderAborts) {
  begin(true);
  ranks_.channel(0, 1).abort("the disk is full");
  ASSERT_TRUE(ranks_.drive(receives_));
  for (auto& message : receives_) {
    const bool in_time = message->ok() && message->holds_pattern();
    const bool aborted =
        message->code() == Code::aborted && message->why().find("disk") != std::string::npos;
    EXPECT_TRUE(in_time || aborted) << message->why();
  }
  EXPECT_EQ(receives_.back()->code(), Code::aborted);
  sends_.clear();
  others_go_on();
}

// A receive that is posted while its unexpected message comes.
TEST_F(RailsInTheMiddle, LateReceives) {
  begin(false);
  ASSERT_TRUE(ranks_.drive(receives_));
  for (auto& message : receives_) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

// A peer that the test plays, which asks, and makes rails.
class RailsPlayed : public TcpPlayed {
 protected:
  explicit RailsPlayed(const TcpOptions& options = with(2)) : TcpPlayed(options) {}

  Greeting rail(uint32_t number) const {
    Greeting made = greeting();
    made.rail = number;
    return made;
  }
  bool is_closed(Stranger& stranger) {
    return wait_for(
        *endpoint_, [&] { return stranger.sent_away(); }, std::chrono::seconds(5));
  }
  bool is_answered(Stranger& stranger, uint32_t number) {
    std::byte bytes[Greeting::bytes];
    size_t got = 0;
    (void)wait_for(
        *endpoint_,
        [&] {
          const ssize_t some = recv(stranger.fd(), bytes + got, sizeof(bytes) - got, MSG_DONTWAIT);
          got += some > 0 ? static_cast<size_t>(some) : 0;
          return some == 0 || got == sizeof(bytes);
        },
        std::chrono::seconds(5));
    Greeting answer;
    return got == sizeof(bytes) && answer.decode(bytes) && answer.rail == number &&
           answer.key == key_;
  }
  void say_spread(Stranger& peer, uint32_t ordinal, uint32_t bytes,
                  const std::vector<Share>& parts) {
    const std::vector<std::byte> payload = encode(parts);
    Frame frame{FrameType::spread,  true, static_cast<uint32_t>(payload.size()), team_,
                {1, ordinal, 0, 0}, 0};
    frame.number = bytes;
    say(peer, frame);
    peer.say(payload.data(), payload.size());
  }
  Stranger connect() const { return Stranger(blob_.entries.front()); }
};

TEST_F(RailsPlayed, CarryWhatSpreadSays) {
  Stranger peer = connect(), one = connect(), two = connect();
  greet(peer);
  one.say(rail(1));
  two.say(rail(7));
  ASSERT_TRUE(is_answered(one, 1));
  ASSERT_TRUE(is_answered(two, 7));
  Message message({1, 3, 0, 0}, 100 * kib), pattern({1, 3, 0, 0}, 0);
  message.receive(*channel_);
  std::vector<std::byte> bytes(100 * kib);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern.expected(i);
  two.say(bytes.data(), 30 * kib);  // before its SPREAD
  progress_a_while();
  EXPECT_FALSE(message.done());
  say_spread(peer, 3, 100 * kib, {{7, 30 * kib}, {1, 70 * kib}});
  progress_a_while();
  EXPECT_FALSE(message.done());
  one.say(bytes.data() + 30 * kib, 70 * kib);
  ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
}

TEST_F(RailsPlayed, OthersAreClosed) {
  Stranger peer = connect();
  greet(peer);
  Message large({1, 0, 0, 0}, 100 * kib);
  large.receive(*channel_);  // now it looks for rails
  Stranger beyond = connect(), wrong = connect(), first = connect();
  beyond.say(rail(5000));
  EXPECT_TRUE(is_closed(beyond));
  Greeting without_key = rail(1);
  without_key.key[3] ^= std::byte{1};
  wrong.say(without_key);
  EXPECT_TRUE(is_closed(wrong));
  Stranger inviting = connect(), twice = connect(), second = connect(), third = connect();
  Greeting invitation = rail(1);
  invitation.invites = true;
  inviting.say(invitation);
  EXPECT_TRUE(is_closed(inviting));
  first.say(rail(1));
  EXPECT_TRUE(is_answered(first, 1));
  twice.say(rail(1));
  EXPECT_TRUE(is_closed(twice));
  second.say(rail(2));
  EXPECT_TRUE(is_answered(second, 2));
  third.say(rail(3));
  EXPECT_TRUE(is_closed(third));
  EXPECT_STREQ(channel_->carrier(), "tcp*2");
  Script().add(data(8, 9)).say(peer);
  Message message({1, 9, 0, 0}, 8);
  message.receive(*channel_);
  EXPECT_TRUE(done_in(message, std::chrono::seconds(5)) && message.ok());
}

// Another connection's bytes may come first.
TEST_F(RailsPlayed, WaitForTheFirstConnection) {
  Stranger early = connect();
  early.say(rail(1));
  progress_a_while();
  EXPECT_FALSE(early.sent_away());
  Stranger peer = connect();
  greet(peer);
  EXPECT_TRUE(is_answered(early, 1));
}

// They may be on their way when the peer finishes, which nobody needs to be warned of.
TEST_F(RailsPlayed, LateOnesAreClosed) {
  Stranger peer = connect();
  greet(peer);
  Message last({1, 9, 0, 0}, 8);
  last.receive(*channel_);
  say(peer, {FrameType::bye, true, 0, team_, {0, 0, 0, 0}, 0});
  ASSERT_TRUE(done_in(last, std::chrono::seconds(5)));
  ASSERT_EQ(last.code(), Code::peer_lost) << last.why();
  testing::internal::CaptureStderr();
  Stranger late = connect();
  late.say(rail(1));
  EXPECT_TRUE(is_closed(late));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

class WrongSpreads : public RailsPlayed, public testing::WithParamInterface<int> {};

TEST_P(WrongSpreads, FailTheLink) {
  const std::vector<Share> parts[] = {{{4, 100 * kib}}, {{1, 10}}, {{1, 0}, {1, 100 * kib}}, {}};
  Stranger peer = connect(), one = connect();
  greet(peer);
  one.say(rail(1));
  ASSERT_TRUE(is_answered(one, 1));
  Message message({1, 3, 0, 0}, 100 * kib);
  message.receive(*channel_);
  say_spread(peer, 3, 100 * kib, parts[GetParam()]);
  ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_EQ(message.code(), GetParam() == 0 ? Code::peer_lost : Code::internal) << message.why();
}

INSTANTIATE_TEST_SUITE_P(All, WrongSpreads, testing::Range(0, 4));

// Who does not want rails, gets none.
class NoRails : public RailsPlayed {
 protected:
  NoRails() : RailsPlayed(with(1)) {}
};

TEST_F(NoRails, AreTaken) {
  Stranger peer = connect(), one = connect();
  greet(peer);
  one.say(rail(1));
  EXPECT_TRUE(is_closed(one));
  Message message({1, 3, 0, 0}, 100 * kib);
  message.receive(*channel_);
  say_spread(peer, 3, 100 * kib, {{1, 100 * kib}});
  ASSERT_TRUE(done_in(message, std::chrono::seconds(5)));
  EXPECT_EQ(message.code(), Code::internal) << message.why();
}

}  // namespace
}  // namespace sluice
