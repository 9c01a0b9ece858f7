// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that break below a queue pair, which works: what was written to it is lost only where
// it does not come.
#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/verbs_rig.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A network of queue pairs that stands still, and has what two ranks wrote, when the connection
// below them breaks.
class OnTheirWay : public testing::TestWithParam<size_t> {
 protected:
  explicit OnTheirWay(seconds connect_timeout = seconds(60))
      : ranks_(endpoints(connect_timeout), 2) {}
  static MakeEndpoint endpoints(seconds connect_timeout) {
    fake_verbs::reset({});
    TcpOptions made;
    made.connect_timeout = connect_timeout;
    return with_verbs(made);
  }
  void SetUp() override {
    ASSERT_TRUE(exchange(ranks_) && exchange_until(ranks_, "verbs"));
    for (int i = 0; i < 100; ++i) ranks_.progress();
    fake_verbs::hold(true);
    for (const size_t from : {0, 1}) {
      add(messages_, {10, 0, 0, 0}, 500).fill().send(ranks_.channel(from, 1 - from));
      add(messages_, {10, 0, 0, 0}, 500).receive(ranks_.channel(1 - from, from));
    }
    ASSERT_TRUE(breaker_.hit(ranks_, GetParam(), Break::reset));
    for (int i = 0; i < 30; ++i) {
      ranks_.at(i % 2).wait(milliseconds(10));
      ranks_.progress();
    }
  }
  void expect_lost() {
    ASSERT_TRUE(ranks_.drive(messages_));
    for (const size_t receives : {1, 3}) {
      const std::string why = messages_[receives]->why();
      EXPECT_NE(why.find("were lost"), std::string::npos) << why;
    }
  }

  Ranks ranks_;
  Messages messages_;
  Breaker breaker_;
};

TEST_P(OnTheirWay, WritesAreWaitedFor) {
  for (auto& each : messages_) EXPECT_FALSE(each->done() && !each->ok()) << each->why();
  fake_verbs::hold(false);
  ASSERT_TRUE(ranks_.drive(messages_));
  for (auto& each : messages_) EXPECT_TRUE(each->ok() && each->holds_pattern()) << each->why();
  EXPECT_TRUE(exchange_until(ranks_, "verbs"));
}

TEST_P(OnTheirWay, WritesThatFailAreLost) {
  fake_verbs::fail_next(12);
  fake_verbs::move_all();
  fake_verbs::hold(false);
  expect_lost();
}

// A device may never say what became of them.
class NeverReported : public OnTheirWay {
 protected:
  NeverReported() : OnTheirWay(seconds(2)) {}
};

TEST_P(NeverReported, WritesAreWaitedForAsLongAsConnectingMayTake) { expect_lost(); }

INSTANTIATE_TEST_SUITE_P(Sides, OnTheirWay, testing::Values(0, 1));
INSTANTIATE_TEST_SUITE_P(Sides, NeverReported, testing::Values(0, 1));

// What the peer had written before it ended is reported after its end shows.
TEST(OnTheWayOfTheDead, WordsAreHeard) {
  for (const size_t dies : {0, 1}) {
    fake_verbs::reset({});
    TcpOptions options;
    options.linger = milliseconds(100);
    Ranks ranks(with_verbs(options), 2);
    Breaker breaker;
    ASSERT_TRUE(exchange(ranks) && exchange_until(ranks, "verbs"));
    for (int i = 0; i < 100; ++i) ranks.progress();
    fake_verbs::hold(true);
    Message sent({10, 0, 0, 0}, 500), got({10, 0, 0, 0}, 500), more({11, 0, 0, 0}, 8);
    sent.fill().send(ranks.channel(dies, 1 - dies));
    ASSERT_TRUE(sent.done());
    fake_verbs::move_all();
    ASSERT_TRUE(breaker.hit(ranks, 1 - dies, Break::reset));
    ranks.leave(dies);
    got.receive(ranks.channel(1 - dies, dies));
    more.receive(ranks.channel(1 - dies, dies));
    int looks = 0;
    ASSERT_TRUE(wait_for(ranks.at(1 - dies), [&] {
      if (++looks > 20) fake_verbs::hold(false);
      return got.done() && more.done();
    }));
    EXPECT_TRUE(got.ok() && got.holds_pattern()) << got.why();
    EXPECT_EQ(more.code(), Code::peer_lost);
  }
}

}  // namespace
}  // namespace sluice
