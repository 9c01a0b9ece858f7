// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that break although both processes live: in every way, between and in calls, on every
// kind of link.
#include <algorithm>
#include <optional>
#include <random>

#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/tls_rig.h"
#include "tests/unit/transports/verbs_rig.h"
#include "transports/link/vigil.h"
#include "transports/shm/upgrade.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Kind { clear, proved, tls, shm, shm_over_tls, verbs };
constexpr const char* carriers[] = {"tcp", "tcp", "tls", "shm", "shm", "verbs"};

class Broken : public testing::TestWithParam<std::tuple<Kind, size_t>> {
 protected:
  static Kind kind() { return std::get<0>(GetParam()); }
  static size_t side() { return std::get<1>(GetParam()); }
  static const char* carrier() { return carriers[static_cast<size_t>(kind())]; }
  static bool is_to_be_had() {
    const bool needs_none = kind() == Kind::clear || kind() == Kind::shm || kind() == Kind::verbs;
    return needs_none || describe_tls(tls_options().folder).ok();
  }

  static TcpOptions options() {
    TcpOptions made;
    if (!is_to_be_had()) return made;
    if (kind() == Kind::proved) made.prover = tls_prover();
    if (kind() == Kind::tls || kind() == Kind::shm_over_tls) {
      made.prover = tls_prover();
      made.filter = tls_filters();
    }
    if (kind() == Kind::shm || kind() == Kind::shm_over_tls) made.upgrades = {make_shm_upgrades()};
    return made;
  }
  static MakeEndpoint endpoints(const TcpOptions& options) {
    return kind() == Kind::verbs ? with_verbs(options) : tcp(options);
  }
  static MakeEndpoint endpoints() { return endpoints(options()); }
  // Forgets what other tests have left.
  static MakeEndpoint first_endpoints() {
    fake_verbs::reset({});
    return endpoints();
  }
  Broken() : ranks_(first_endpoints(), 2) {}
  void SetUp() override {
    if (!is_to_be_had()) GTEST_SKIP() << "built without OpenSSL?";
    ASSERT_TRUE(is_at_rest());
  }
  static bool is_upgraded() { return kind() >= Kind::shm; }
  // As ranks that sleep do from time to time.
  void let_both_look() {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(milliseconds(110));
      look_once();
    }
  }
  void let_look(size_t rank) {
    for (int i = 0; i < 15; ++i) {
      if (i % 3 == 0) std::this_thread::sleep_for(milliseconds(110));
      ranks_.at(rank).wait(milliseconds(1));
    }
  }
  // To where that rank listens.
  ptrdiff_t connections_to(size_t rank) {
    return std::ranges::count_if(descriptors(),
                                 [&](int fd) { return listens_at(ranks_.at(rank), fd, true); });
  }
  // (One that has just heard of something does not sleep.)
  void look_once() {
    for (const size_t rank : {0, 1}) {
      for (int i = 0; i < 3; ++i) ranks_.at(rank).wait(milliseconds(1));
    }
  }
  // All that was sent has come, but for what nobody waits for.
  void settle() {
    for (int i = 0; i < 100; ++i) ranks_.progress();
  }
  // The link goes by its carrier, and nothing is on its way.
  bool is_at_rest() {
    const bool rests = exchange(ranks_) && exchange_until(ranks_, carrier());
    settle();
    return rests;
  }
  // A message each way. What went wrong; empty: nothing.
  std::string carry(uint32_t call, size_t bytes) {
    Messages messages;
    post(messages, call, bytes);
    return outcome(messages);
  }
  void post(Messages& messages, uint32_t call, size_t bytes) {
    for (const size_t from : {0, 1}) {
      add(messages, {call, 0, 0, 0}, bytes).fill().send(ranks_.channel(from, 1 - from));
      add(messages, {call, 0, 0, 0}, bytes).receive(ranks_.channel(1 - from, from));
    }
  }
  std::string outcome(Messages& messages) {
    if (!ranks_.drive(messages)) return "it hangs";
    for (auto& message : messages) {
      if (!message->ok()) return message->why();
      if (!message->holds_pattern()) return "wrong bytes";
    }
    return "";
  }

  Ranks ranks_;
  Breaker breaker_;
};

// A RST both sides see when they send. Of an end that one side alone knows of, the other must not
// send before it hears of that, because what it sends is lost.
TEST_P(Broken, BetweenCallsNobodyNotices) {
  uint32_t call = 10;
  for (const Break how : all_breaks) {
    for (const size_t bytes : {8, 100'000}) {
      SCOPED_TRACE(static_cast<int>(how));
      ASSERT_TRUE(breaker_.hit(ranks_, side(), how));
      if (is_upgraded()) let_both_look();
      if (how != Break::reset) {
        Messages first;
        add(first, {++call, 0, 0, 0}, bytes).receive(ranks_.channel(1 - side(), side()));
        add(first, {call, 0, 0, 0}, bytes).fill().send(ranks_.channel(side(), 1 - side()));
        EXPECT_EQ(outcome(first), "");
      }
      EXPECT_EQ(carry(++call, bytes), "");
      EXPECT_EQ(carry(++call, bytes), "");
      ASSERT_TRUE(is_at_rest());
    }
  }
}

// What the other side wrote to an upgrade, before it had read this side's greeting on another
// connection, is there to be read.
TEST_P(Broken, WhatAnUpgradeKeepsIsNotLost) {
  if (!is_upgraded()) return;  // (a socket drops it)
  uint32_t call = 10;
  for (const Break how : all_breaks) {
    SCOPED_TRACE(static_cast<int>(how));
    Messages messages;
    ASSERT_TRUE(breaker_.hit(ranks_, side(), how));
    const size_t aware = side(), other = 1 - side();
    let_look(aware);
    add(messages, {++call, 0, 0, 0}, 500).receive(ranks_.channel(aware, other));
    for (int i = 0; i < 50; ++i) ranks_.at(aware).progress();  // it greets
    add(messages, {call, 0, 0, 0}, 500).fill().send(ranks_.channel(other, aware));
    add(messages, {call, 0, 0, 0}, 500).fill().send(ranks_.channel(aware, other));
    add(messages, {call, 0, 0, 0}, 500).receive(ranks_.channel(other, aware));
    EXPECT_EQ(outcome(messages), "");
    ASSERT_TRUE(is_at_rest());
  }
}

// The same, and the other side, which has noticed nothing, calls no more: what it wrote comes.
TEST_P(Broken, WhatAnUpgradeKeepsComesAlthoughThePeerComputes) {
  if (!is_upgraded()) return;
  ASSERT_TRUE(breaker_.hit(ranks_, side(), Break::forget));
  const size_t aware = side(), other = 1 - side();
  let_look(aware);
  Message sent({10, 0, 0, 0}, 500), got({10, 0, 0, 0}, 500);
  got.receive(ranks_.channel(aware, other));
  for (int i = 0; i < 50; ++i) ranks_.at(aware).progress();  // it greets
  sent.fill().send(ranks_.channel(other, aware));
  ASSERT_TRUE(sent.ok());
  ASSERT_TRUE(wait_for(ranks_.at(aware), [&] { return got.done(); }));
  EXPECT_TRUE(got.ok() && got.holds_pattern()) << got.why();
  EXPECT_EQ(carry(11, 500), "");
}

// The connection that takes the place of the first breaks, too, after any number of turns. (An
// upgrade goes on without.)
TEST_P(Broken, TheNextOneBreaksAsWell) {
  if (is_upgraded()) return;
  int whole = 0, second = 0;
  for (int turns = 0; turns < 24; ++turns) {
    SCOPED_TRACE(turns);
    Ranks ranks(endpoints(), 2);
    ASSERT_TRUE(exchange(ranks) && exchange_until(ranks, carrier()));
    for (int i = 0; i < 100; ++i) ranks.progress();
    ASSERT_TRUE(breaker_.hit(ranks, side(), Break::reset));
    Message sent({10, 0, 0, 0}, 8), got({10, 0, 0, 0}, 8);
    got.receive(ranks.channel(1 - side(), side()));
    sent.fill().send(ranks.channel(side(), 1 - side()));
    for (int i = 0; i < turns; ++i) {
      ranks.at(i % 2).progress();
      std::this_thread::yield();
    }
    second += breaker_.hit(ranks, side(), Break::reset) ? 1 : 0;
    ASSERT_TRUE(ranks.drive([&] { return sent.done() && got.done(); }));
    whole += got.ok() && got.holds_pattern() ? 1 : 0;
    EXPECT_TRUE(got.ok() || got.why().find("were lost") != std::string::npos) << got.why();
  }
  EXPECT_GT(second, 0);
  EXPECT_GT(whole, 0);
}

class SilentLinks : public Broken {};

// In an outage one side's kernel gives up first. When the network is back, the other side's has not
// given up yet, and its probes have no answer.
TEST_P(SilentLinks, WhatMayBeGoneIsNotSentOn) {
  Messages messages;
  const size_t gone = side(), other = 1 - side();
  const int end = end_of(ranks_, other);
  {
    const Outage outage(end);
    ASSERT_TRUE(breaker_.hit(ranks_, gone, Break::reset));
    ASSERT_TRUE(outage.await_probe());
    add(messages, {50, 0, 0, 0}, 100).fill().send(ranks_.channel(other, gone));
    settle();
  }
  EXPECT_FALSE(messages.front()->done());
  add(messages, {50, 0, 0, 0}, 100).receive(ranks_.channel(gone, other));
  EXPECT_EQ(outcome(messages), "");
  EXPECT_EQ(carry(51, 5000), "");
}

// The same where nothing was gone.
TEST_P(SilentLinks, WhatAnswersAgainIsSentOn) {
  Messages messages;
  const int end = end_of(ranks_, side());
  {
    const Outage outage(end);
    ASSERT_TRUE(outage.await_probe());
    post(messages, 50, 100'000);
    settle();
    EXPECT_FALSE(messages.front()->done() && messages.back()->done());
  }
  EXPECT_EQ(outcome(messages), "");
  EXPECT_EQ(end_of(ranks_, side()), end);
}

// An outage begins before the last message is acknowledged: then the kernel sends that again, and
// does not probe.
TEST_P(SilentLinks, WhatMayBeGoneIsNotSentOnAfterAMessage) {
  Messages last, messages;
  const size_t gone = side(), other = 1 - side();
  {
    const Outage outage(end_of(ranks_, other));
    add(last, {49, 0, 0, 0}, 100).fill().send(ranks_.channel(other, gone));
    add(last, {49, 0, 0, 0}, 100).receive(ranks_.channel(gone, other));
    ASSERT_EQ(outcome(last), "");
    ASSERT_TRUE(breaker_.hit(ranks_, gone, Break::reset));
    ASSERT_TRUE(outage.await_retransmissions());
    add(messages, {50, 0, 0, 0}, 100).fill().send(ranks_.channel(other, gone));
    settle();
  }
  EXPECT_FALSE(messages.front()->done());
  add(messages, {50, 0, 0, 0}, 100).receive(ranks_.channel(gone, other));
  EXPECT_EQ(outcome(messages), "");
  EXPECT_EQ(carry(51, 5000), "");
}

// Where the peer's host answers on another connection.
TEST(SilentForLong, TheConnectionIsMadeAgain) {
  TcpOptions options;
  options.peer_timeout = seconds(3);
  Ranks ranks(tcp(options), 2);
  ASSERT_TRUE(exchange(ranks));
  const Socket kept(fcntl(end_of(ranks, 0), F_DUPFD_CLOEXEC, 0));
  const Socket other(fcntl(end_of(ranks, 1), F_DUPFD_CLOEXEC, 0));
  const Outage outage(kept.fd()), others(other.fd());
  ASSERT_TRUE(outage.await_probe() && others.await_probe());
  EXPECT_TRUE(exchange(ranks));
}

// The peer may not doubt, and have sent something that will come.
TEST(SilentForLong, TheKernelWaitsAsLongAsALink) {
  Ranks ranks(tcp(TcpOptions()), 2);
  ASSERT_TRUE(exchange(ranks));
  const Socket kept(fcntl(end_of(ranks, 0), F_DUPFD_CLOEXEC, 0));
  const Outage outage(kept.fd());
  ASSERT_TRUE(outage.await_probe());
  for (const seconds limit : {seconds(3), seconds(60), seconds(600)}) {
    Doubt doubt;
    EXPECT_TRUE(doubt.forbids(kept, limit));
    const auto is = [&](int option) {
      int value = 0;
      socklen_t size = sizeof(value);
      EXPECT_EQ(getsockopt(kept.fd(), IPPROTO_TCP, option, &value, &size), 0);
      return value;
    };
    const int probes = is(TCP_KEEPCNT) - outage.look().tcpi_probes;
    EXPECT_GE(seconds(probes * is(TCP_KEEPINTVL)), limit);
  }
}

// A packet is lost, and sent again, while messages follow each other.
TEST(Doubts, NotWhatIsInUse) {
  Ranks ranks(tcp(TcpOptions()), 2);
  ASSERT_TRUE(exchange(ranks));
  const Socket end(fcntl(end_of(ranks, 0), F_DUPFD_CLOEXEC, 0));
  const Socket other(fcntl(end_of(ranks, 1), F_DUPFD_CLOEXEC, 0));
  Doubt doubt;
  ASSERT_FALSE(doubt.forbids(end, seconds(60)));
  const Outage outage(other.fd());
  ASSERT_EQ(send(end.fd(), "x", 1, 0), 1);
  auto last = Vigil::Clock::now();
  for (int sent_again = 0; sent_again < 200;) {
    std::this_thread::sleep_for(milliseconds(5));
    const auto now = Vigil::Clock::now(), before = std::exchange(last, now);
    if (Vigil::Clock::now() - before > milliseconds(200)) return;  // this process had no processor
    ASSERT_FALSE(doubt.forbids(end, seconds(60)));
    Vigil::Signs signs;
    ASSERT_TRUE(ask_kernel(end, &signs));
    sent_again += signs.tries > 0 ? 1 : 0;
  }
}

// Sleeping ranks look for ends.
TEST_P(Broken, WhatIsNoticedBetweenCallsTakesNoDescriptor) {
  ASSERT_TRUE(breaker_.hit(ranks_, side(), Break::reset));
  const size_t before = descriptors().size();
  for (int i = 0; i < 50 && descriptors().size() > before - 2; ++i) {
    std::this_thread::sleep_for(milliseconds(110));
    look_once();
  }
  EXPECT_EQ(descriptors().size(), before - 2);
  EXPECT_EQ(carry(10, 5000), "");
  ASSERT_TRUE(is_at_rest());
}

// Nothing was on its way, so nothing is lost.
TEST_P(Broken, AWaitThatLosesNoByteGoesOn) {
  uint32_t call = 10;
  for (const Break how : all_breaks) {
    SCOPED_TRACE(static_cast<int>(how));
    const size_t aware = side(), other = 1 - side();
    Messages first, second;
    ++call;
    add(first, {call, 0, 0, 0}, 5000).receive(ranks_.channel(other, aware));
    add(second, {call, 0, 0, 0}, 5000).receive(ranks_.channel(aware, other));
    settle();
    ASSERT_TRUE(breaker_.hit(ranks_, aware, how));
    if (is_upgraded()) let_both_look();
    for (int i = 0; i < 20; ++i) ranks_.progress();
    add(first, {call, 0, 0, 0}, 5000).fill().send(ranks_.channel(aware, other));
    EXPECT_EQ(outcome(first), "");
    add(second, {call, 0, 0, 0}, 5000).fill().send(ranks_.channel(other, aware));
    EXPECT_EQ(outcome(second), "");
    ASSERT_TRUE(is_at_rest());
  }
}

// The sender is not driven until the receiver has all that was sent: then the break comes in the
// middle of a frame, and nothing is on its way. (What a filter has taken, and not yet sent, is
// lost.)
TEST_P(Broken, TheRestOfAFrameFollows) {
  constexpr size_t bytes = 1 << 20;
  TcpOptions small = options();
  small.socket_buffer = 16 << 10;
  for (const size_t from : {0, 1}) {
    Ranks ranks(endpoints(small), 2);
    Breaker breaker;
    ASSERT_TRUE(exchange(ranks) && exchange_until(ranks, carrier()));
    Message receive({10, 0, 0, 0}, bytes), send({10, 0, 0, 0}, bytes);
    receive.receive(ranks.channel(1 - from, from));
    send.fill().send(ranks.channel(from, 1 - from));
    ASSERT_FALSE(send.done());
    for (int i = 0; i < 100; ++i) {
      ranks.at(1 - from).progress();
      if (i % 20 == 0) std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_FALSE(receive.done());
    ASSERT_TRUE(breaker.hit(ranks, side(), Break::reset));
    ASSERT_TRUE(ranks.drive([&] { return send.done() && receive.done(); }));
    if (kind() == Kind::tls && !receive.ok()) {
      EXPECT_NE(receive.why().find("were lost"), std::string::npos) << receive.why();
      continue;
    }
    EXPECT_TRUE(send.ok() && receive.ok() && receive.holds_pattern()) << receive.why();
  }
}

// One side alone notices a break, and looks for the other, which aborts a team, gives up the link,
// and refuses: what it wrote to the upgrade before says why.
TEST_P(Broken, WhoIsRefusedReadsWhyFirst) {
  if (!is_upgraded()) return;  // (what a socket held has been read, or is lost)
  const size_t seeker = side(), other = 1 - side();
  const Socket kept(fcntl(end_of(ranks_, seeker), F_DUPFD_CLOEXEC, 0));
  Message awaited({10, 0, 0, 0}, 8), never({10, 0, 0, 0}, 8);
  ASSERT_TRUE(breaker_.hit(ranks_, seeker, Break::forget));
  const auto before = connections_to(other);
  awaited.receive(ranks_.channel(seeker, other));
  ASSERT_TRUE(wait_for(ranks_.at(seeker), [&] { return connections_to(other) > before; }));
  ranks_.channel(other, seeker).abort("no more");
  never.receive(ranks_.channel(other, seeker, 2));
  ASSERT_EQ(shutdown(kept.fd(), SHUT_WR), 0);
  ASSERT_TRUE(wait_for(ranks_.at(other), [&] { return never.done(); }));
  ASSERT_TRUE(ranks_.drive([&] { return awaited.done(); }));
  EXPECT_NE(awaited.why().find("no more"), std::string::npos) << awaited.why();
}

// At any moment of a call: right, or an error that says what broke, on both sides.
TEST_P(Broken, InACallItIsRightOrAnError) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int right = 0, wrong = 0;
  std::string why;
  for (int round = 0; round < 30; ++round) {
    Ranks ranks(endpoints(), 2);
    Breaker breaker;
    ASSERT_TRUE(exchange(ranks) && exchange_until(ranks, carrier()));
    Messages messages;
    const size_t sizes[] = {8, 60'000, 1'000'000};
    for (uint32_t i = 0; i < 6; ++i) {
      const size_t bytes = sizes[random() % 3], from = random() % 2;
      add(messages, {10 + i, 0, 0, 0}, bytes).fill().send(ranks.channel(from, 1 - from));
      add(messages, {10 + i, 0, 0, 0}, bytes).receive(ranks.channel(1 - from, from));
    }
    for (unsigned turns = random() % 60; turns > 0; --turns) ranks.at(random() % 2).progress();
    (void)breaker.hit(ranks, side(), all_breaks[random() % std::size(all_breaks)]);
    for (int i = 0; i < 50; ++i) ranks.progress();
    breaker.reset_forgotten();
    ASSERT_TRUE(ranks.drive(messages)) << "hangs in round " << round;
    bool good = true;
    for (auto& message : messages) {
      good &= message->ok();
      if (message->ok()) {
        EXPECT_TRUE(message->holds_pattern()) << round;
      } else {
        why += message->why() + "; ";
        EXPECT_EQ(message->code(), Code::peer_lost) << message->why();
        EXPECT_NE(message->why().find("rank "), std::string::npos) << message->why();
      }
    }
    ++(good ? right : wrong);
  }
  EXPECT_EQ(right + wrong, 30);
  if (is_upgraded()) {
    EXPECT_EQ(wrong, 0) << "an upgrade loses nothing: " << why;
  }
}

// Before both directions go over it, the base loses what is on its way.
TEST_P(Broken, WhileItChangesToAnUpgradeItIsRightOrAnError) {
  if (!is_upgraded()) return;
  std::mt19937 random(7);
  int right = 0;
  for (unsigned turns = 0; turns < 60; ++turns) {
    SCOPED_TRACE(turns);
    Ranks ranks(endpoints(), 2);
    ASSERT_TRUE(exchange(ranks));
    Messages messages;
    for (uint32_t call = 0; call < 3; ++call) {
      for (const size_t from : {0, 1}) {
        add(messages, {10 + call, 0, 0, 0}, 600).fill().send(ranks.channel(from, 1 - from));
        add(messages, {10 + call, 0, 0, 0}, 600).receive(ranks.channel(1 - from, from));
      }
      for (unsigned i = 0; i < turns / 3; ++i) ranks.at(random() % 2).progress();
    }
    (void)breaker_.hit(ranks, side(), all_breaks[turns % 2]);
    for (int i = 0; i < 50; ++i) ranks.progress();
    breaker_.reset_forgotten();
    ASSERT_TRUE(ranks.drive(messages));
    bool good = true;
    for (auto& message : messages) {
      good &= message->ok();
      EXPECT_TRUE(message->ok() ? message->holds_pattern() : message->code() == Code::peer_lost)
          << message->why();
    }
    right += good ? 1 : 0;
  }
  EXPECT_GT(right, 0);
}

INSTANTIATE_TEST_SUITE_P(Links, SilentLinks,
                         testing::Values(std::make_tuple(Kind::clear, 0),
                                         std::make_tuple(Kind::tls, 1)));
INSTANTIATE_TEST_SUITE_P(Links, Broken,
                         testing::Combine(testing::Values(Kind::clear, Kind::proved, Kind::tls,
                                                          Kind::shm, Kind::shm_over_tls,
                                                          Kind::verbs),
                                          testing::Values(0, 1)));

// A RST takes with it what the other side has not read.
TEST(TcpBreaks, LostBytesAreNamedOnBothSides) {
  for (const size_t from : {0, 1}) {
    Ranks ranks(tcp(), 2);
    Breaker breaker;
    ASSERT_TRUE(exchange(ranks));
    Message send({10, 0, 0, 0}, 5000);
    send.fill().send(ranks.channel(from, 1 - from));
    ASSERT_TRUE(send.ok());
    std::this_thread::sleep_for(milliseconds(10));
    ASSERT_TRUE(breaker.hit(ranks, 1 - from, Break::reset));
    Message receive({10, 0, 0, 0}, 5000), other({11, 0, 0, 0}, 8);
    receive.receive(ranks.channel(1 - from, from));
    other.receive(ranks.channel(from, 1 - from));
    ASSERT_TRUE(ranks.drive([&] { return receive.done() && other.done(); }));
    EXPECT_EQ(receive.code(), Code::peer_lost);
    EXPECT_NE(receive.why().find("5056 bytes from it were lost"), std::string::npos)
        << receive.why();
    EXPECT_EQ(other.code(), Code::peer_lost);
    EXPECT_NE(other.why().find("5056 bytes on the way to it"), std::string::npos) << other.why();
  }
}

// A process whose connection broke, and that has ended since, is found at once, whichever side
// waits: also the one to which the peer had connected.
TEST(TcpBreaks, AProcessThatEndedIsFound) {
  for (const size_t rank : {0, 1}) {
    TcpOptions options;
    options.connect_timeout = seconds(60);
    Ranks ranks(tcp(options), 2);
    Breaker breaker;
    ASSERT_TRUE(exchange(ranks));
    ASSERT_TRUE(breaker.hit(ranks, rank, Break::reset));
    ranks.leave(rank);
    Message receive({10, 0, 0, 0}, 8);
    receive.receive(ranks.channel(1 - rank, rank));
    ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
    EXPECT_EQ(receive.code(), Code::peer_lost);
    EXPECT_NE(receive.why().find("is gone: Connection reset by peer"), std::string::npos)
        << receive.why();
  }
}

// The end of a connection is no break, on any kind of link: the peer does not look for one that
// has given its link up, and may never call again.
TEST_P(Broken, AnEndIsNoBreak) {
  for (const bool waits : {false, true}) {
    Ranks ranks(endpoints(), 2);
    ASSERT_TRUE(exchange(ranks) && exchange_until(ranks, carrier()));
    for (int i = 0; i < 100; ++i) ranks.progress();
    Message receive({10, 0, 0, 0}, 8);
    if (waits) receive.receive(ranks.channel(1 - side(), side()));
    ASSERT_TRUE(breaker_.hit(ranks, side(), Break::shutdown));
    if (!waits) receive.receive(ranks.channel(1 - side(), side()));
    Endpoint& other = ranks.at(1 - side());  // alone
    ASSERT_TRUE(wait_for(
        other, [&] { return receive.done(); }, seconds(20)));
    EXPECT_EQ(receive.code(), Code::peer_lost);
    EXPECT_NE(receive.why().find("is gone: it closed the connection without a goodbye"),
              std::string::npos)
        << receive.why();
  }
}

}  // namespace
}  // namespace sluice
