// SPDX-License-Identifier: BSD-3-Clause
//
// Team set-ups that fail: all ranks reach the same outcome, however late they are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/allocations.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

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

TEST(Forming, ARankWhoseEarlierCallFailedTellsTheOthers) {
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

// Who does such a call of two ranks, if the ranks have read files of choices with these lines;
// empty: none.
std::vector<Way::By> ways_with(const std::array<std::string, 2>& lines, const Call& call) {
  LoopbackHub hub;
  std::vector<Way::By> found(2);
  const auto read_choices = [&](Rank rank, Process& process) {
    const std::string path = ::testing::TempDir() + "sluice-setup-choices-" +
                             std::to_string(getpid()) + "-" + std::to_string(rank);
    Status status;
    Outcomes header;
    ASSERT_EQ(header.read(path, {}, &status), Outcomes::File::none);
    header.note("", {}, {.collective = Collective::broadcast, .ranks = 9},
                {.choice = "rules", .ruled = ""});
    if (!lines[rank].empty()) std::ofstream(path) << header.text() << lines[rank];
    (void)process.outcomes.read(path, {}, &status);
    unlink(path.c_str());
    EXPECT_TRUE(status.ok()) << status.message();
  };
  on_ranks(2, loopback(hub), read_choices, [&](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    Way way;
    ASSERT_TRUE(member.team->find_way(call, {}, &way).ok());
    found[member.rank] = way.by;
    const bool is_closed = way.of && way.of->trial.state() == Trial::State::closed;
    EXPECT_EQ(is_closed, way.of && way.of->known);
  });
  return found;
}

TEST(Forming, RanksUseTheFileOfChoicesThatAllHaveRead) {
  const std::string line =
      "barrier * ranks:2 hosts:1 per_host:0 bytes:0 ordered:0 ragged:0 exact:1 -> ";
  const std::string mpi = line + "mpi\n", rules = line + "rules\n";
  using By = Way::By;
  const std::vector<By> by_sluice(2, By::sluice), by_mpi(2, By::mpi);
  Call barrier;
  barrier.collective = Collective::barrier;
  EXPECT_EQ(ways_with({mpi, mpi}, barrier), by_mpi);
  EXPECT_EQ(ways_with({rules, rules}, barrier), by_sluice);
  EXPECT_EQ(ways_with({"", ""}, barrier), by_sluice);
  EXPECT_EQ(ways_with({mpi, rules}, barrier), by_sluice);
  EXPECT_EQ(ways_with({"", mpi}, barrier), by_sluice);
  EXPECT_EQ(ways_with({mpi, ""}, barrier), by_sluice);
}

// They are in the class of calls that are, but MPI may do them otherwise, or not know them.
TEST(Forming, TheFileOfChoicesSaysNothingOfOperationsThatAreNotTried) {
  const std::string line = "allreduce * ranks:2 hosts:1 per_host:0 bytes:4-7 ordered:0 ragged:0 ";
  const std::string lines = line + "exact:0 -> mpi\n" + line + "exact:1 -> mpi\n";
  const auto who_does = [&](Op op, Type type, bool is_users) {
    Call call;
    call.collective = Collective::allreduce;
    call.element = call.bytes = 4;
    call.reduction.kernel = find_kernel(op, type);
    if (!is_users) call.reduction.arithmetic = Arithmetic{type, op};
    return ways_with({lines, lines}, call);
  };
  using By = Way::By;
  const std::vector<By> by_sluice(2, By::sluice), by_mpi(2, By::mpi);
  EXPECT_EQ(who_does(Op::sum, Type::int32, false), by_mpi);
  EXPECT_EQ(who_does(Op::sum, Type::int32, true), by_sluice);
  EXPECT_EQ(who_does(Op::sum, Type::int8, false), by_sluice);
  EXPECT_EQ(who_does(Op::max, Type::int8, false), by_sluice);
  EXPECT_EQ(who_does(Op::max, Type::int32, false), by_mpi);
}

// A ProgressMpi that can be copied only so many times.
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
    process.progress_mpi = dear;
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

// Set-ups that together cover every exchange.
struct Course {
  const char* name;
  Hinter hints;
  bool settings_differ, strict, shares, blind;
  bool mpi;            // the outcome on all ranks: MPI keeps the communicator
  uint32_t exchanges;  // number of exchanges
  uint32_t known;      // the same if these ranks were in such a team before
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
    {"a team", no_hints, false, true, false, false, false, 2, 1},
    {"shared memory", no_hints, false, true, true, false, false, 3, 1},
    {"shared memory that one can't reach", no_hints, false, true, true, true, false, 5, 5},
    {"hints alike, off", off_alike, false, true, true, false, true, 2, 2},
    {"hints differ", others, false, true, true, false, false, 5, 5},
    {"hints differ, off", off_and_others, false, true, true, false, true, 4, 4},
    {"settings differ", no_hints, true, false, true, false, true, 3, 3},
    {"settings differ, strictly", no_hints, true, true, true, false, false, 3, 3},
};

// The outcome on each of three ranks: ok with a working team, ok without a team, or an error.
struct End {
  std::vector<Status> statuses{3};
  int teams = 0;  // working teams
  uint32_t exchanges = 0;
  bool was_short = false;  // the allocation to fail was requested
};

// Called before each exchange of a rank; exchanges count from 0.
using Hitch = std::function<void(Rank rank, uint32_t exchange)>;

class Hitched final : public Bootstrap {
 public:
  Hitched(Bootstrap& inner, const Hitch& hitch, bool known)
      : inner_(inner), hitch_(hitch), known_(known) {}
  Rank rank() const override { return inner_.rank(); }
  Rank size() const override { return inner_.size(); }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const GrantedAllocations granted;
    if (hitch_) hitch_(rank(), exchanges);
    ++exchanges;
    return inner_.allgather(mine, all);
  }
  uint64_t group_fingerprint() const override {
    return inner_.group_fingerprint() + (known_ ? 0 : 1);
  }

  uint32_t exchanges = 0;

 private:
  Bootstrap& inner_;
  const Hitch& hitch_;
  const bool known_;
};

// A rank whose allocations fail while it forms its team, as in RefusedAllocations.
struct Poor {
  Rank rank = ~Rank{0};
  uint32_t first = 0, times = 0;
};

// known: the ranks were in such a team before. hitch: may be empty.
End walk(const Course& course, bool known, const Hitch& hitch, const Poor& poor = {}) {
  LoopbackHub hub;
  ArenaHub arenas;
  if (course.blind) arenas.blind(1);
  End end;
  std::atomic<int> working{0};
  const auto adjust = [&](Rank rank, Process& process) {
    process.knobs.timeout = 5;
    process.knobs.on_mismatch = course.strict ? "abort" : "mpi";
    if (course.settings_differ) process.settings = "SLUICE_SEGMENT=" + std::to_string(rank);
    if (course.shares) process.arenas = arenas.source();
    process.host = 1;
  };
  on_ranks(3, loopback(hub), adjust, [&](Member& member) {
    Hints hints = course.hints(member.rank);
    Hitched bootstrap(member.bootstrap, hitch, known);
    const std::string name = "another";
    const auto form = [&]() -> Result<std::unique_ptr<Team>> {
      if (member.rank != poor.rank) return Team::form(member.process, bootstrap, name, &hints);
      const RefusedAllocations refused(poor.first, poor.times);
      auto formed = Team::form(member.process, bootstrap, name, &hints);
      end.was_short = RefusedAllocations::any();
      return formed;
    };
    auto formed = form();
    // As src/mpi does if there was no memory even to take part.
    if (bootstrap.exchanges == 0) {
      EXPECT_TRUE(Team::report_failed_rank(member.process, bootstrap));
    }
    if (member.rank == 0) end.exchanges = bootstrap.exchanges;
    Status& status = end.statuses[member.rank];
    status = formed.status();
    if (!formed.ok() || !*formed) return;
    status = (*formed)->run({});
    if (status.ok()) ++working;
  });
  end.teams = working;
  return end;
}

void expect_one_end(const End& end) {
  for (const Status& status : end.statuses) {
    EXPECT_EQ(status.ok(), end.statuses[0].ok())
        << end.statuses[0].message() << " | " << status.message();
    EXPECT_NE(status.code(), Code::timeout) << status.message();
  }
}

// In each exchange one rank is late, and the others wait for it.
TEST(Forming, ALateRankChangesNothing) {
  for (const Course& course : courses) {
    SCOPED_TRACE(course.name);
    const auto be_late = [](Rank rank, uint32_t exchange) {
      if (rank == exchange % 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    const bool fails = course.settings_differ && course.strict;
    for (const bool known : {false, true}) {
      for (const Hitch& hitch : {Hitch(), Hitch(be_late)}) {
        const End end = walk(course, known, hitch);
        expect_one_end(end);
        EXPECT_EQ(end.statuses[0].ok(), !fails) << end.statuses[0].message();
        EXPECT_EQ(end.teams, fails || course.mpi ? 0 : 3);
        EXPECT_EQ(end.exchanges, known ? course.known : course.exchanges);
      }
    }
  }
}

void starve(const Course& course, bool known, Rank poor, uint32_t times) {
  bool was_short = true;
  const uint32_t step = sweep(1U, 2U, 32U);
  for (uint32_t first = poor + times % step; was_short; first += (first < 8 ? 1 : 5) * step) {
    SCOPED_TRACE(std::string(course.name) + (known ? ", known" : "") + ": rank " +
                 std::to_string(poor) + " without allocation " + std::to_string(first) + " and " +
                 std::to_string(times - 1) + " more");
    const End end = walk(course, known, {}, {poor, first, times});
    expect_one_end(end);
    was_short = end.was_short;
  }
}

// One allocation fails, or several in a row, so that the memory reserve does not help.
TEST(Forming, AllRanksComeToTheSameEndWhateverOneHasNoMemoryFor) {
  for (const Course& course : courses) {
    for (const bool known : {false, true}) {
      if (known && course.known == course.exchanges) continue;
      for (const Rank poor : {0, 1}) {
        for (const uint32_t times : {1, 10}) starve(course, known, poor, times);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::testing
