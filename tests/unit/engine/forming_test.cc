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

TEST(Forming, WhatOneCouldNotTakeUpIsGivenBack) {
  LoopbackHub hub;
  ArenaHub arenas;
  arenas.blind(1);
  const auto adjust = [&](Rank, Process& process) {
    process.arenas = arenas.source();
    process.host = 1;
  };
  on_ranks(3, loopback(hub), adjust, [](Member& member) { EXPECT_TRUE(member.team); });
  EXPECT_EQ(arenas.missing(), 2U) << "in two attempts";
}

// Set-ups that take every exchange there is.
struct Course {
  const char* name;
  Hinter hints;
  bool settings_differ, strict, shares, blind;
  bool mpi;  // is what it comes to, on all ranks
};

const Hinter no_hints = [](Rank) { return Hints{}; };
const Hinter off_alike = [](Rank) { return Hints{{"sluice", "off"}}; };
const Hinter off_and_others = [](Rank rank) {
  return Hints{{"sluice", "off"}, {"sluice_bcast", rank == 0 ? "chain" : "mpi"}};
};
const Hinter others = [](Rank rank) {
  return Hints{{"sluice_bcast", rank == 0 ? "chain" : "mpi"}};
};

const Course courses[] = {
    {"a team", no_hints, false, true, false, false, false},
    {"shared memory", no_hints, false, true, true, false, false},
    {"shared memory that one can't reach", no_hints, false, true, true, true, false},
    {"hints alike, off", off_alike, false, true, true, false, true},
    {"hints differ", others, false, true, true, false, false},
    {"hints differ, off", off_and_others, false, true, true, false, true},
    {"settings differ", no_hints, true, false, true, false, true},
    {"settings differ, strictly", no_hints, true, true, true, false, false},
};
constexpr uint32_t most_exchanges = 9;

// What each of three ranks comes to: ok with a team that works, ok without, or an error. timeouts:
// of each rank.
std::vector<Status> walk(const Course& course, const std::vector<double>& timeouts,
                         const Hitch& hitch, int* teams, uint32_t* exchanges) {
  LoopbackHub hub;
  ArenaHub arenas;
  if (course.blind) arenas.blind(1);
  std::vector<Status> ends(3);
  std::atomic<int> working{0};
  std::atomic<uint32_t> most{0};
  const auto adjust = [&](Rank rank, Process& process) {
    process.knobs.setup_timeout = timeouts[rank];
    process.knobs.timeout = 5;
    process.knobs.on_mismatch = course.strict ? "abort" : "mpi";
    if (course.settings_differ) process.settings = "SLUICE_SEGMENT=" + std::to_string(rank);
    if (course.shares) process.arenas = arenas.source();
    process.host = 1;
  };
  const auto count_and_hitch = [&](Rank rank, uint32_t exchange) {
    if (rank == 0) most = exchange + 1;
    return hitch(rank, exchange);
  };
  on_ranks(
      3, loopback(hub), adjust,
      [&](Member& member) {
        Call barrier;
        barrier.collective = Collective::barrier;
        ends[member.rank] = member.team ? member.team->run(barrier) : member.formed;
        if (member.team && ends[member.rank].ok()) ++working;
      },
      course.hints, ~Rank{0}, count_and_hitch);
  *teams = working;
  *exchanges = most;
  return ends;
}

void expect_one_end(const std::vector<Status>& ends) {
  for (const Status& end : ends) {
    EXPECT_EQ(end.ok(), ends[0].ok()) << ends[0].message() << " | " << end.message();
  }
}

TEST(Forming, AllRanksComeToTheSameEndWhicheverExchangeOneHasNoMemoryFor) {
  const std::vector<double> patient(3, 20);
  for (const Course& course : courses) {
    int teams = 0;
    uint32_t exchanges = 0;
    const auto ends = walk(
        course, patient, [](Rank, uint32_t) { return true; }, &teams, &exchanges);
    expect_one_end(ends);
    EXPECT_EQ(teams, ends[0].ok() && !course.mpi ? 3 : 0) << course.name;
    ASSERT_LT(exchanges, most_exchanges);
    for (uint32_t which = 0; which < exchanges; ++which) {
      for (Rank poor = 0; poor < 3; ++poor) {
        SCOPED_TRACE(std::string(course.name) + ": rank " + std::to_string(poor) + " in exchange " +
                     std::to_string(which));
        uint32_t seen = 0;
        const auto told = walk(
            course, patient,
            [&](Rank rank, uint32_t exchange) { return rank != poor || exchange != which; }, &teams,
            &seen);
        expect_one_end(told);
        for (const Status& end : told) EXPECT_NE(end.code(), Code::timeout) << end.message();
      }
    }
  }
}

// One rank comes to an exchange when the time of the others is up there.
TEST(Forming, AllRanksComeToTheSameEndWhicheverExchangeOneIsLateFor) {
  for (const Course& course : courses) {
    int teams = 0;
    uint32_t exchanges = 0;
    (void)walk(
        course, {20, 20, 20}, [](Rank, uint32_t) { return true; }, &teams, &exchanges);
    for (uint32_t which = 0; which < exchanges; ++which) {
      SCOPED_TRACE(std::string(course.name) + ": late for exchange " + std::to_string(which));
      uint32_t seen = 0;
      const auto be_late = [&](Rank rank, uint32_t exchange) {
        if (rank == 1 && exchange == which) {
          std::this_thread::sleep_for(std::chrono::milliseconds(250));
        }
        return true;
      };
      const auto ends = walk(course, {0.1, 20, 0.1}, be_late, &teams, &seen);
      expect_one_end(ends);
      EXPECT_NE(ends[1].code(), Code::timeout) << ends[1].message();
    }
  }
}

}  // namespace
}  // namespace sluice::testing
