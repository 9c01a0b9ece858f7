// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "transports/link/spread_choice.h"

namespace sluice::spread_choices {
namespace {

constexpr size_t rails = 6, message = 256 << 10;

// Sends messages to a peer, over flows of which each carries so many bytes a millisecond, and all
// of them `most`.
class Traffic {
 public:
  Traffic(uint64_t each, uint64_t most) : each_(each), most_(most) {}

  // One message; true if it is spread.
  bool send(SpreadChoice& choice, size_t open) {
    const bool spreads = choice.spreads(message, open);
    const auto now = std::chrono::milliseconds(++sent_);
    Flow& used = spreads ? over_rails_ : alone_;
    used.acknowledged += spreads ? std::min(most_, rails * each_) : each_;
    alone_.outstanding = spreads ? 0 : message;
    over_rails_.outstanding = spreads ? message : 0;
    if (choice.measures() && choice.is_due(SpreadChoice::Clock::time_point(now), true)) {
      choice.observe({now, now, alone_, over_rails_}, [] { return uint64_t{0}; });
    }
    return spreads;
  }

 private:
  const uint64_t each_, most_;
  int sent_ = 0;
  Flow alone_, over_rails_;
};

TEST(SpreadChoice, WithoutAProbeAllIsSpread) {
  SpreadChoice choice(false, rails);
  EXPECT_TRUE(choice.wants_rails());
  EXPECT_TRUE(choice.spreads(message, 1));
  EXPECT_TRUE(choice.is_in_use());
  EXPECT_FALSE(choice.measures());
  EXPECT_FALSE(choice.watches());
  EXPECT_FALSE(choice.news().has_value());
}

TEST(SpreadChoice, SeveralAreFaster) {
  SpreadChoice choice(true, rails);
  Traffic traffic(25'000, 119'000);
  int plain = 0;
  while (!choice.wants_rails()) plain += traffic.send(choice, 0) ? 0 : 1;
  EXPECT_GT(plain * 25'000, 3 << 20);                                 // all over one connection
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(traffic.send(choice, i));  // some are missing
  EXPECT_TRUE(traffic.send(choice, rails));
  EXPECT_FALSE(choice.is_in_use());  // it is only tried
  std::string news;
  for (int i = 0; i < 1000 && news.empty(); ++i) {
    (void)traffic.send(choice, rails);
    if (const auto found = choice.news()) news = found->data();
  }
  EXPECT_EQ(news, "one connection carries 25 MB/s, 6 carry 119: uses 6");
  EXPECT_TRUE(choice.is_in_use());
  EXPECT_TRUE(traffic.send(choice, rails));
  EXPECT_FALSE(choice.news().has_value());
  EXPECT_FALSE(choice.measures());
}

// After many bytes a probe goes on with fewer rails, but not with one.
TEST(SpreadChoice, FewRails) {
  for (const size_t open : {1, 2}) {
    SpreadChoice choice(true, rails);
    Traffic traffic(25'000, 119'000);
    bool spread = false;
    for (int i = 0; i < 400 && !spread; ++i) spread = traffic.send(choice, open);
    EXPECT_EQ(spread, open > 1);
  }
}

// What comes from the peer: its probe may need rails, and it may choose them.
TEST(SpreadChoice, ThePeers) {
  SpreadChoice choice(true, rails);
  EXPECT_FALSE(choice.wants_rails());
  for (int i = 0; i < 40; ++i) choice.note_expected(message);
  EXPECT_TRUE(choice.wants_rails());
  EXPECT_FALSE(choice.is_in_use());
  choice.note_received(true);
  EXPECT_TRUE(choice.is_in_use());
  choice.note_received(false);
  EXPECT_FALSE(choice.is_in_use());
}

// Looks are as often as is useful, and always before something is written.
TEST(SpreadChoice, Looks) {
  SpreadChoice choice(true, rails);
  const auto at = [](int us) {
    return SpreadChoice::Clock::time_point(std::chrono::microseconds(us));
  };
  EXPECT_TRUE(choice.is_due(at(1000), false));
  EXPECT_FALSE(choice.is_due(at(1050), false));
  EXPECT_TRUE(choice.is_due(at(1060), true));
  EXPECT_FALSE(choice.is_due(at(1150), false));
  EXPECT_TRUE(choice.is_due(at(1160), false));
}

}  // namespace
}  // namespace sluice::spread_choices
