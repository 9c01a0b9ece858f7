// SPDX-License-Identifier: BSD-3-Clause
//
// How a rank waits, in counts: how often MPI progresses in so many turns, and that nobody naps.
#include "src/engine/waiter.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace sluice {
namespace {

// An endpoint that counts what a waiter asks of it.
class Counting final : public Endpoint {
 public:
  const char* name() const override { return "counting"; }
  Caps caps() const override { return {}; }
  std::vector<std::byte> address() const override { return {}; }
  Result<std::unique_ptr<Channel>> open(const TeamId&, const Peer&) override {
    return Status(Code::unavailable, "no channels");
  }
  bool can_connect() override { return false; }
  bool progress() override {
    ++turns;
    return moves;
  }
  void wait(std::chrono::microseconds limit) override {
    naps += limit.count() > 0;
    limits.push_back(limit);
  }
  void say_bye() override {}

  bool moves = false;
  uint32_t turns = 0, naps = 0;
  std::vector<std::chrono::microseconds> limits;
};

class Waiting : public testing::Test {
 protected:
  static constexpr uint32_t turns = 100'000;

  Waiter waiter(int spin) {
    return {&endpoint_, [this] { ++progressed_; }, spin, oversubscription_};
  }

  Counting endpoint_;
  Oversubscription oversubscription_;
  uint32_t progressed_ = 0;
};

// MPI progresses about as often as in its own waiting, where a turn is one look.
TEST_F(Waiting, LetsMpiProgressInMostTurnsAndNeverNaps) {
  Waiter idle = waiter(-1);
  idle.begin();
  for (uint32_t i = 0; i < turns; ++i) idle.turn();
  EXPECT_EQ(endpoint_.turns, turns);
  EXPECT_EQ(endpoint_.naps, 0U);
  EXPECT_GT(progressed_, turns / 100);
}

TEST_F(Waiting, WithoutTheEndpointToo) {
  Waiter idle = waiter(-1);
  idle.begin();
  for (uint32_t i = 0; i < turns; ++i) idle.idle();
  EXPECT_EQ(endpoint_.naps, 0U);
  EXPECT_GT(progressed_, turns / 100);
}

// Ranks that share a processor yield; between two yields MPI may progress once.
TEST_F(Waiting, OnAnOversubscribedProcessorToo) {
  oversubscription_.learn(2);
  Waiter idle = waiter(-1);
  idle.begin();
  for (uint32_t i = 0; i < turns && progressed_ == 0; ++i) idle.turn();
  EXPECT_EQ(endpoint_.naps, 0U);
  EXPECT_GT(progressed_, 0U);
}

// While bytes move, MPI progresses too, though less often.
TEST_F(Waiting, WhileTrafficGoesOnToo) {
  endpoint_.moves = true;
  Waiter busy = waiter(-1);
  busy.begin();
  while (progressed_ < 3) busy.turn();
  EXPECT_EQ(endpoint_.naps, 0U);
}

// So that the scheduler moves it to an idle processor. Once: nobody may be idle.
TEST_F(Waiting, SleepsOnceWhereItSeemsToShareItsProcessor) {
  const auto sleeps = [] {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
  };
  Oversubscription::evidence = {};
  Oversubscription::evidence.met = 2;
  Oversubscription::evidence.switches = -1;
  Waiter shared = waiter(-1);
  shared.begin();
  const long before = sleeps();
  while (Oversubscription::evidence.met == 2) shared.turn();
  EXPECT_GE(sleeps(), before + 1);
  EXPECT_TRUE(oversubscription_.is_there());
  EXPECT_EQ(endpoint_.naps, 0U);
  Oversubscription::evidence = {};
}

// Or a program whose waits are all short would yield for good. (Where others take the processor for
// whole slices, it spins through many waits from one yield to the next.)
TEST_F(Waiting, LooksAgainInShortWaitsToo) {
  Oversubscription::evidence = {};
  Oversubscription::evidence.seems_there = true;
  Waiter shared = waiter(-1);
  while (Oversubscription::evidence.yields < 8) {
    shared.begin();
    shared.idle();
  }
  EXPECT_GT(Oversubscription::evidence.met + Oversubscription::evidence.alone, 0U);
  Oversubscription::evidence = {};
}

// A neighbour that takes whole slices is yielded to more and more rarely.
TEST(Courtesy, EndsWhereYieldsCostSlices) {
  using namespace std::chrono_literals;
  Courtesy courtesy;
  Courtesy::Clock::time_point now{1h};
  const auto yield = [&](Courtesy::Clock::duration cost) {
    EXPECT_TRUE(courtesy.yields(now));
    courtesy.note(now, now + cost);
    now += cost;
  };
  yield(3ms);
  yield(1us);  // a rank that waits yields back
  yield(3ms);
  for (const int pause : {16, 32, 64, 64}) {
    yield(3ms);
    EXPECT_FALSE(courtesy.yields(now));
    now += pause * 3ms - 1ns;
    EXPECT_FALSE(courtesy.yields(now));
    now += 1ns;
  }
  yield(1us);
  yield(3ms);
  EXPECT_TRUE(courtesy.yields(now));
}

// (Its own processor may be anybody's, so that it yields is all that is certain.)
TEST_F(Waiting, YieldsToRanksThatShareTheProcessorWhateverItCosts) {
  const auto yields = [this] {
    Waiter shared = waiter(-1);
    shared.begin();
    for (uint32_t i = 0; i < 8; ++i) shared.idle();
    return Oversubscription::evidence.yields;
  };
  Oversubscription::evidence = {};
  Oversubscription::evidence.seems_there = true;
  Courtesy& courtesy = Oversubscription::evidence.courtesy;
  const auto now = Courtesy::Clock::now();
  courtesy.note(now, now + std::chrono::hours(1));
  courtesy.note(now, now + std::chrono::hours(1));
  EXPECT_EQ(yields(), 0U);
  oversubscription_.learn(2);
  EXPECT_EQ(yields(), 8U);
  Oversubscription::evidence = {};
}

TEST_F(Waiting, NapsWhereTheSettingAllowsIt) {
  Waiter idle = waiter(0);
  idle.begin();
  for (uint32_t i = 0; i < 100; ++i) idle.turn();
  EXPECT_GT(endpoint_.naps, 0U);
}

// So that a long wait costs little, and MPI does not wait long for a short one.
TEST_F(Waiting, NapsLongerTheLongerItWaits) {
  using namespace std::chrono_literals;
  Waiter idle = waiter(0);
  idle.begin();
  do {
    idle.turn();
  } while (endpoint_.limits.empty() || endpoint_.limits.back() < 1ms);
  EXPECT_EQ(endpoint_.limits.front(), 50us);
  EXPECT_TRUE(std::ranges::is_sorted(endpoint_.limits));
  idle.turn();
  EXPECT_EQ(endpoint_.limits.back(), 1ms);
  idle.stir();
  idle.turn();
  EXPECT_EQ(endpoint_.limits.back(), 50us);
}

}  // namespace
}  // namespace sluice
