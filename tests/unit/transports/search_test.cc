// SPDX-License-Identifier: BSD-3-Clause
//
// For how long a peer is looked for whose connection broke: what shows that it lives, and what only
// seems to.
#include "transports/link/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/slow_filter.h"
#include "transports/tcp/dialer.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Sign = Search::Sign;

constexpr milliseconds step{500};
constexpr seconds wait_limit{10};

class Searching : public testing::Test {
 protected:
  Searching() { search_.begin(now_); }
  // Looks twice a second, as the driver does. Whether it is over in that time.
  bool look(milliseconds time, Sign sign, milliseconds until = wait_limit) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += step;
      if (search_.is_over(now_, sign, until)) return true;
    }
    return false;
  }

  Search::Clock::time_point now_ = Search::Clock::time_point(hours(1));
  Search search_;
};

TEST_F(Searching, EndsWhereNobodyAnswers) {
  EXPECT_FALSE(look(wait_limit - step, Sign::none));
  EXPECT_TRUE(look(step, Sign::none));
}

TEST_F(Searching, HasNoEndWithoutALimit) { EXPECT_FALSE(look(hours(2), Sign::none, seconds(0))); }

TEST_F(Searching, GoesOnWhileThePeerHoldsWords) {
  for (const Sign sign : {Sign::held, Sign::proves}) {
    EXPECT_FALSE(look(10 * wait_limit, sign));
    EXPECT_FALSE(look(wait_limit - step, Sign::none));
  }
  EXPECT_TRUE(look(step, Sign::none));
}

TEST_F(Searching, GoesOnWhileANetworkComesAndGoes) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(look(seconds(5), Sign::none));
    EXPECT_FALSE(look(step, Sign::held));
  }
}

// A stranger holds this side's words for a second, and then closes the connection, again and again.
TEST_F(Searching, DoesNotGoOnForWhoDropsThem) {
  int rounds = 0;
  for (; rounds < 100 && !look(seconds(1), Sign::none); ++rounds) {
    EXPECT_FALSE(look(seconds(1), Sign::held));
    search_.take_back();
  }
  EXPECT_LE(rounds, wait_limit / seconds(2));
}

// As while the process was stopped, or the program did not call MPI.
TEST_F(Searching, CountsNoTimeInWhichNobodyLooked) {
  EXPECT_FALSE(look(wait_limit - step, Sign::none));
  now_ += hours(1);
  EXPECT_FALSE(look(wait_limit - step, Sign::none));
}

TEST_F(Searching, Pauses) {
  EXPECT_TRUE(search_.may_dial(now_));
  search_.pause(now_, seconds(1));
  EXPECT_FALSE(search_.may_dial(now_ + step));
  EXPECT_TRUE(search_.may_dial(now_ + 2 * step));
  search_.begin(now_);
  EXPECT_TRUE(search_.may_dial(now_));
}

// An address where nobody listens yet.
class Deserted {
 public:
  Deserted() : socket_(std::move(*make_socket(loopback(), {}))) {
    const SocketAddress any = to_socket_address(loopback(), 0);
    EXPECT_EQ(bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&any.storage), any.size), 0);
  }
  uint16_t port() const { return port_of(socket_.fd(), false); }
  void listen() { EXPECT_EQ(::listen(socket_.fd(), 8), 0); }
  bool has_caller() const { return bool(*accept_from(socket_)); }

 private:
  const Socket socket_;
};

// A dialer that resumes, to several addresses.
class Resuming : public testing::Test {
 protected:
  static Candidate at(uint16_t port) {
    Candidate made;
    made.address = loopback();
    made.port = port;
    made.certain = true;
    return made;
  }
  void begin(const std::vector<Candidate>& candidates, seconds limit = seconds(60)) {
    Greeting greeting{wire_version, Ranks::process(0), Ranks::process(1), {}, 0};
    greeting.resumes = true;
    context_.options.self = Ranks::process(0);
    context_.options.connect_timeout = limit;
    dialer_ = std::make_unique<Dialer>(context_, candidates, greeting, PairKey{});
  }
  // Until it ends, or something holds.
  Dialer::State drive(auto until, int turns) {
    Dialer::State state = Dialer::State::dialing;
    for (int i = 0; i < turns && state == Dialer::State::dialing && !until(); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
      state = dialer_->advance();
    }
    return state;
  }
  // Nobody listens at one of the addresses, and at the other is a peer that is late.
  Dialer::State dial(bool refuser_carried) {
    Candidate late = at(peer_.port), other = at(deserted_.port());
    (refuser_carried ? other : late).carried = true;
    begin({late, other});
    return drive([] { return false; }, 200);  // the second: after one
  }
  // Whoever has connected.
  bool send_away() const {
    (void)accept_from(peer_.socket);
    return false;
  }

  const Listener peer_ = std::move(*listen_on(loopback(), {}));
  Deserted deserted_;
  TcpContext context_;
  std::unique_ptr<Dialer> dialer_;
};

TEST_F(Resuming, IsNotRefusedByAnotherAddress) {
  EXPECT_EQ(dial(false), Dialer::State::dialing);
  EXPECT_TRUE(accept_from(peer_.socket)->fd() >= 0);
}

TEST_F(Resuming, IsRefusedByTheOneThatCarriedTheConnection) {
  EXPECT_EQ(dial(true), Dialer::State::failed);
  EXPECT_EQ(dialer_->code(), Code::peer_lost);
}

// The peer may be busy, or have no room. Its link's search goes on, at all addresses.
TEST_F(Resuming, IsNotOverForThePeerWhereConnectionsAreClosed) {
  for (const bool others : {false, true}) {
    Candidate closes = at(peer_.port);
    closes.carried = true;
    begin(others ? std::vector{at(deserted_.port()), closes} : std::vector{closes}, seconds(1));
    EXPECT_EQ(drive([&] { return send_away(); }, 3000), Dialer::State::failed);
    EXPECT_EQ(dialer_->code(), Code::unavailable) << dialer_->failures();
  }
}

// One of the addresses takes connections and says nothing, one closes them, and at the last the
// peer is back after a while.
TEST_F(Resuming, DialsAllAgainWhileOneGoesOn) {
  const Listener silent = std::move(*listen_on(loopback(), {}));
  for (const bool closes : {false, true}) {
    Deserted back;
    std::vector<Candidate> candidates{at(back.port()), at(silent.port)};
    if (closes) candidates.push_back(at(peer_.port));
    begin(candidates);
    EXPECT_EQ(drive([&] { return send_away(); }, 150), Dialer::State::dialing);
    back.listen();
    bool found = false;
    const auto is_found = [&] { return send_away() || (found = found || back.has_caller()); };
    EXPECT_EQ(drive(is_found, 3000), Dialer::State::dialing);
    EXPECT_TRUE(found);
  }
}

// Links whose connection broke, to a peer that is not driven.
class LinksThatSearch : public testing::Test {
 protected:
  static TcpOptions options() {
    TcpOptions made;
    made.interfaces = "127.0.0.0/8";
    made.dial_after = milliseconds(10);
    made.connect_timeout = seconds(60);
    made.peer_timeout = seconds(3);
    return made;
  }
  LinksThatSearch() : ranks_(tcp(options()), 2) {}

  Ranks ranks_;
  Breaker breaker_;
};

class FromEitherSide : public LinksThatSearch, public testing::WithParamInterface<size_t> {};

// Another of the peer's addresses leads to a machine that takes connections and says nothing.
TEST_P(FromEitherSide, FindADeadHostBesideASilentMachine) {
  const size_t seeker = GetParam(), peer = 1 - seeker;
  IpAddress elsewhere = loopback();
  elsewhere.bytes[3] = 2;
  const Listener decoy = std::move(*listen_on(elsewhere, {}));
  AddressBlob blob = address_of(ranks_.at(peer));
  blob.entries = {blob.entries.front(), {elsewhere, 8, decoy.port}};
  auto opened = ranks_.at(seeker).open({Ranks::process(0), 1},
                                       {Ranks::process(peer), blob.encode(), "the peer"});
  ASSERT_TRUE(opened.ok());
  Message sent({1, 0, 0, 0}, 8), got({1, 0, 0, 0}, 8), awaited({2, 0, 0, 0}, 8);
  sent.fill().send(**opened);
  got.receive(ranks_.channel(peer, seeker));
  ASSERT_TRUE(ranks_.drive([&] { return sent.done() && got.done(); }));
  cut_off(ranks_, peer);
  ASSERT_TRUE(breaker_.hit(ranks_, seeker, Break::reset));
  awaited.receive(**opened);
  ASSERT_TRUE(wait_for(ranks_.at(seeker), [&] { return awaited.done(); }));
  EXPECT_NE(awaited.why().find("its host has not answered for 3 s"), std::string::npos)
      << awaited.why();
}

// The peer's host takes connections, but no byte on them comes through.
TEST_P(FromEitherSide, FindAHostThatAcknowledgesNothing) {
  const size_t seeker = GetParam(), peer = 1 - seeker;
  ASSERT_TRUE(exchange(ranks_));
  swallow(listeners_of(ranks_, peer));
  ASSERT_TRUE(breaker_.hit(ranks_, seeker, Break::reset));
  Message awaited({2, 0, 0, 0}, 8);
  awaited.receive(ranks_.channel(seeker, peer));
  ASSERT_TRUE(wait_for(ranks_.at(seeker), [&] { return awaited.done(); }));
  EXPECT_EQ(awaited.code(), Code::peer_lost);
  EXPECT_NE(awaited.why().find("its host has not answered for 3 s"), std::string::npos)
      << awaited.why();
}

// Where the peer had connected to this side, whose connections a firewall may refuse, a process
// that has ended is waited for. But its host is not silent.
TEST_F(LinksThatSearch, SayThatAHostRefuses) {
  AddressBlob blob = address_of(ranks_.at(0));
  ++blob.host;  // another
  auto opened =
      ranks_.at(1).open({Ranks::process(0), 1}, {Ranks::process(0), blob.encode(), "the peer"});
  ASSERT_TRUE(opened.ok());
  Message sent({1, 0, 0, 0}, 8), got({1, 0, 0, 0}, 8), awaited({2, 0, 0, 0}, 8);
  got.receive(ranks_.channel(0, 1));
  for (int i = 0; i < 20; ++i) ranks_.at(0).progress();  // it greets
  sent.fill().send(**opened);
  ASSERT_TRUE(ranks_.drive([&] { return sent.done() && got.done(); }));
  ASSERT_TRUE(breaker_.hit(ranks_, 1, Break::reset));
  ranks_.leave(0);
  awaited.receive(**opened);
  ASSERT_TRUE(wait_for(ranks_.at(1), [&] { return awaited.done(); }));
  EXPECT_NE(awaited.why().find("nobody answers as it did"), std::string::npos) << awaited.why();
  EXPECT_NE(awaited.why().find("Connection refused"), std::string::npos) << awaited.why();
}

INSTANTIATE_TEST_SUITE_P(Links, FromEitherSide, testing::Values(0, 1));

// This process can prove nothing any more, so nobody will take its word: it says why, and waits for
// no limit.
class ProversThatEnd : public testing::TestWithParam<size_t> {
 protected:
  ProversThatEnd() : ranks_(tcp(options()), 2) {}
  TcpOptions options() {
    TcpOptions made;
    made.interfaces = "127.0.0.0/8";
    made.dial_after = milliseconds(10);
    made.peer_timeout = seconds(0);
    made.prover = prover_;
    return made;
  }

  const std::shared_ptr<PoorProver> prover_ = std::make_shared<PoorProver>();
  Ranks ranks_;
  Breaker breaker_;
};

TEST_P(ProversThatEnd, EndALinkWhoseConnectionBroke) {
  const size_t seeker = GetParam(), peer = 1 - seeker;
  ASSERT_TRUE(exchange(ranks_));
  ASSERT_TRUE(breaker_.hit(ranks_, seeker, Break::reset));
  prover_->closed = true;
  Message awaited({2, 0, 0, 0}, 8);
  awaited.receive(ranks_.channel(seeker, peer));
  ASSERT_TRUE(wait_for(ranks_.at(seeker), [&] { return awaited.done(); }));
  EXPECT_EQ(awaited.code(), Code::unavailable);
  EXPECT_NE(awaited.why().find("the prover is closed"), std::string::npos) << awaited.why();
}

INSTANTIATE_TEST_SUITE_P(Links, ProversThatEnd, testing::Values(0, 1));

// The peer computes, and each connection to it breaks.
TEST_F(LinksThatSearch, CountNoInvitations) {
  ASSERT_TRUE(exchange(ranks_));
  ASSERT_TRUE(breaker_.hit(ranks_, 1, Break::reset));
  Message awaited({2, 0, 0, 0}, 8);
  awaited.receive(ranks_.channel(1, 0));
  for (int broken = 0; broken < 15;) {
    (void)ranks_.at(1).progress();
    ranks_.at(1).wait(milliseconds(2));
    ASSERT_FALSE(awaited.done()) << awaited.why() << " after " << broken;
    broken += breaker_.hit(ranks_, 1, Break::reset) ? 1 : 0;
  }
  Message sent({2, 0, 0, 0}, 8);
  sent.fill().send(ranks_.channel(0, 1));
  ASSERT_TRUE(ranks_.drive([&] { return awaited.done() && sent.done(); }));
  EXPECT_TRUE(awaited.ok()) << awaited.why();
}

}  // namespace
}  // namespace sluice
