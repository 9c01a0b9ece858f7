// SPDX-License-Identifier: BSD-3-Clause
//
// Teams that are not formed: all ranks come to the same end, however late.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>

#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "transports/loopback/loopback.h"

namespace sluice::testing {
namespace {

EndpointMaker loopback(LoopbackHub& hub) {
  return [&hub](Rank, const ProcessId& id) { return hub.endpoint(id); };
}

TEST(Forming, ALateRankIsWaitedFor) {
  LoopbackHub hub;
  const auto dawdle = [](Rank rank, Process&) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  on_ranks(3, loopback(hub), dawdle, [](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    Call barrier;
    barrier.collective = Collective::barrier;
    EXPECT_TRUE(member.team->run(barrier).ok());
  });
}

TEST(Forming, ARankThatComesAfterOthersGaveUpLearnsIt) {
  LoopbackHub hub;
  const auto dawdle = [](Rank rank, Process& process) {
    process.knobs.setup_timeout = rank == 0 ? 0.2 : 30;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  };
  on_ranks(3, loopback(hub), dawdle, [](Member& member) {
    EXPECT_FALSE(member.team);
    if (member.rank == 0) {
      EXPECT_EQ(member.formed.code(), Code::timeout);
      return;
    }
    EXPECT_EQ(member.formed.code(), Code::aborted);
    EXPECT_NE(member.formed.message().find("rank 0 gave up"), std::string::npos)
        << member.formed.message();
  });
}

TEST(Forming, ARankThatStaysAwayIsNotWaitedFor) {
  LoopbackHub hub;
  const auto expect_news = [](Member& member) {
    EXPECT_FALSE(member.team);
    EXPECT_EQ(member.formed.code(), Code::aborted);
    EXPECT_NE(member.formed.message().find("rank 1 saw an earlier call on it fail"),
              std::string::npos)
        << member.formed.message();
  };
  on_ranks(3, loopback(hub), {}, expect_news, {}, 1);
}

// A Poke that takes its time to be copied.
struct Slow {
  Slow() = default;
  Slow(const Slow&) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }
  Slow(Slow&&) = default;
  void operator()() const {}
};

struct Late {
  Rank rank;             // the one that is late
  bool before_settling;  // or else as the hub says
  std::chrono::milliseconds before_offers{0}, before_taking_up{0};
  bool shares;  // memory
};

// The others' time is up in the exchange that one is late for, whichever it is.
TEST(Forming, ARankThatComesLateWithATeamLearnsThatOthersGaveUp) {
  constexpr std::chrono::milliseconds none{0}, long_time{600};
  for (const Late& late :
       {Late{1, true, none, none, false}, Late{1, true, none, none, true},
        Late{0, false, long_time, none, true}, Late{1, false, none, long_time, true}}) {
    LoopbackHub hub;
    ArenaHub arenas;
    arenas.dawdle(late.before_offers, late.before_taking_up);
    const auto adjust = [&](Rank rank, Process& process) {
      process.knobs.setup_timeout = rank == late.rank ? 20 : 0.2;
      process.knobs.timeout = 5;
      if (rank == late.rank && late.before_settling) process.poke = Slow();
      if (late.shares) process.arenas = arenas.source();
      process.host = 1;
    };
    on_ranks(2, loopback(hub), adjust, [&](Member& member) {
      Status status = member.formed;
      if (member.rank != late.rank) {
        EXPECT_EQ(status.code(), Code::timeout) << status.message();
        return;
      }
      if (member.team) status = member.team->run({});
      EXPECT_EQ(status.code(), Code::aborted) << status.message();
      const bool told_in_exchange = late.shares && late.before_taking_up == none;
      const char* const words = told_in_exchange ? "gave up waiting" : "nobody came";
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    });
  }
}

// A Poke that can be copied so many times.
struct Dear {
  explicit Dear(int copies) : left(std::make_shared<std::atomic<int>>(copies)) {}
  Dear(const Dear& other) : left(other.left) {
    if (--*left < 0) throw std::bad_alloc();
  }
  Dear(Dear&&) = default;
  void operator()() const {}
  std::shared_ptr<std::atomic<int>> left;
};

TEST(Forming, WithoutMemoryOnOneRankFailsOnAll) {
  LoopbackHub hub;
  const auto impoverish = [](Rank rank, Process& process) {
    if (rank != 2) return;
    const Dear dear(1);
    process.poke = dear;
  };
  on_ranks(3, loopback(hub), impoverish, [](Member& member) {
    EXPECT_FALSE(member.team);
    if (member.rank == 2) {
      EXPECT_EQ(member.formed.code(), Code::memory);
      return;
    }
    EXPECT_EQ(member.formed.code(), Code::aborted);
    EXPECT_NE(member.formed.message().find("rank 2 had no memory"), std::string::npos)
        << member.formed.message();
  });
}

}  // namespace
}  // namespace sluice::testing
