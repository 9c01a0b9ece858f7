// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of teams: ranks that are threads, which meet in a barrier where a program's would call
// MPI. How long calls take is made up, so that no machine's load decides.
#include "src/engine/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/engine/team.h"
#include "tests/unit/engine/played_trial.h"
#include "tests/unit/engine/programs_rank.h"
#include "tests/unit/engine/trials_rig.h"
#include "tests/unit/support/allocations.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

class Trials : public TrialsRig {};

// Calls of several kinds; those of two kinds are of one class.
class MixedProgram {
 public:
  MixedProgram(Member& member, std::barrier<>& mpi, uint64_t seed)
      : member_(member),
        common_(seed),
        own_(seed * 100 + member.rank + 1),
        integers_(member.rank),
        doubles_(member.rank),
        rank_(member, mpi, [this](bool by_mpi) { return time_of(by_mpi); }) {
    integers_.call.bytes = doubles_.call.bytes;  // of one class with it
  }

  // Returns who did each call.
  std::vector<WayBy> play(uint32_t calls) {
    std::vector<WayBy> log;
    for (; made_ < calls; ++made_) {
      if (own_() % 200 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own_() % 300));
      const uint32_t kind = common_() % kinds;
      rank_.only_decides = common_() % 32 != 0;
      const Call call = next_call(kind);
      Kept& kept = kept_[kind];
      if (own_() % 100 == 0) kept.lease.end();
      if (own_() % 8 != 0 && kept.lease.use()) {
        const Status status =
            rank_.only_decides ? Status() : member_.team->run_by(*kept.algorithm, call);
        EXPECT_TRUE(status.ok()) << status.message();
        log.push_back(WayBy::sluice);
      } else {
        const bool done = rank_.make(call);
        log.push_back(rank_.way.by);
        if (!done) return log;
        keep(kept);
      }
      check(kind, log.back());
    }
    return log;
  }

 private:
  static constexpr uint32_t kinds = 4;
  struct Kept {
    CallLease lease;
    const Algorithm* algorithm = nullptr;
  };

  Call next_call(uint32_t kind) {
    root_ = common_() % member_.size;
    if (kind == 0) return integers_.call;
    if (kind == 1) return doubles_.call;
    memory_.fill(std::byte(member_.rank == root_ ? made_ : 0));
    Call call = small_call(kind == 2 ? Collective::broadcast : Collective::barrier, memory_);
    if (kind == 2) call.root = root_;
    return call;
  }
  void keep(Kept& kept) {
    const Way& way = rank_.way;
    kept.lease.end();
    if (way.by != WayBy::sluice || own_() % 2 == 0) return;
    kept.algorithm = way.algorithm;
    kept.lease.begin(way.of);
  }
  void check(uint32_t kind, WayBy by) {
    if (rank_.only_decides || by == WayBy::mpi) return;
    const bool is_right = kind == 0   ? integers_.has_result(member_.size)
                          : kind == 1 ? doubles_.has_result(member_.size)
                                      : kind != 2 || memory_[100] == std::byte(made_);
    EXPECT_TRUE(is_right) << "call " << made_ << ", kind " << kind;
  }
  // Now one is faster, now the other; ranks measure different times, and some lose theirs.
  float time_of(bool by_mpi) {
    if (own_() % 50 == 0) return Sample::unknown;
    const bool is_slow = (made_ / 3000 % 2 == 0) != by_mpi;
    return (is_slow ? long_time : short_time) + static_cast<float>(own_() % 100'000'000);
  }

  Member& member_;
  std::mt19937_64 common_, own_;
  SmallAllreduce<int32_t> integers_;
  SmallAllreduce<double> doubles_;
  std::array<std::byte, 512> memory_{};
  std::array<Kept, kinds> kept_;
  ProgramsRank rank_;
  uint32_t made_ = 0;
  Rank root_ = 0;
};

std::string describe_ways(const std::vector<WayBy>& log) {
  std::string text;
  for (const WayBy by : log) text += "SMms"[static_cast<size_t>(by)];
  return text;
}

// (Gaps depend on how long agreements take. So it is chance which calls a window gets, and whether
// one of them is made twice; other tests see to that.)
TEST_P(Trials, all_ranks_go_the_same_way) {
  const auto random = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed());
  for (const uint64_t seed : {uint64_t{1}, random + 2}) {
    for (const Rank ranks : {2U, 3U, 5U}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", ranks " + std::to_string(ranks));
      std::vector<std::vector<WayBy>> logs(ranks);
      std::barrier mpi(ranks);
      run(ranks,
          [&](Member& member) { logs[member.rank] = MixedProgram(member, mpi, seed).play(6000); });
      for (const auto& log : logs) EXPECT_EQ(describe_ways(log), describe_ways(logs[0]));
      EXPECT_GT(std::ranges::count(logs[0], WayBy::sluice), 0);
      EXPECT_GT(std::ranges::count(logs[0], WayBy::mpi), 0);
    }
  }
}

// Makes that many calls, and returns who did each.
std::vector<WayBy> make_calls(ProgramsRank& rank, const Call& call, uint32_t calls) {
  std::vector<WayBy> log;
  for (uint32_t i = 0; i < calls && rank.make(call); ++i) log.push_back(rank.way.by);
  return log;
}

MadeUp made_up(float of_sluice, float of_mpi) {
  return [=](bool by_mpi) { return by_mpi ? of_mpi : of_sluice; };
}

constexpr uint32_t window = 17;  // calls

// `before` calls one way, and one more; then a window's candidates in pairs of calls, and so on.
std::vector<WayBy> expected_ways(std::initializer_list<uint32_t> before, WayBy by, WayBy other) {
  const bool is_straight = other == WayBy::sluice || other == WayBy::mpi;
  std::vector<WayBy> ways;
  for (const uint32_t calls : before) {
    ways.insert(ways.end(), calls + 1, by);
    for (uint32_t place = 0; place < 8; ++place) {
      const bool is_other = (Trial(2).candidate_at(place) == by_mpi) == (by == WayBy::sluice);
      ways.insert(ways.end(), {is_other && is_straight ? other : by, is_other ? other : by});
    }
  }
  return ways;
}

void append(std::vector<WayBy>* ways, const std::vector<WayBy>& more) {
  ways->insert(ways->end(), more.begin(), more.end());
}

TEST_P(Trials, hand_integers_to_mpi_and_back) {
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    bool is_mpi_slow = false;
    ProgramsRank rank(member, mpi,
                      [&](bool by_mpi) { return by_mpi == is_mpi_slow ? long_time : short_time; });
    rank.only_decides = true;
    SmallAllreduce<int32_t> allreduce(member.rank);
    std::vector<WayBy> expected = expected_ways({64, 0}, WayBy::sluice, WayBy::mpi);
    expected.resize(64 + 2 * window + 100, WayBy::mpi);
    EXPECT_EQ(make_calls(rank, allreduce.call, 64 + 2 * window + 100), expected);
    is_mpi_slow = true;
    const std::vector<WayBy> after = make_calls(rank, allreduce.call, 2000);
    EXPECT_EQ(after.front(), WayBy::mpi);
    EXPECT_EQ(after.back(), WayBy::sluice);
    rank.only_decides = false;
    ASSERT_TRUE(rank.make(allreduce.call));
    EXPECT_TRUE(allreduce.has_result(member.size));
  });
}

// Whether a rank fails to decide about a call, one of whose allocations fails.
bool fails_without(uint32_t refused, Member& member, const Call& call) {
  Way way;
  try {
    const RefusedAllocations refuses(refused, 1);
    return !member.team->find_way(call, {}, &way).ok();
  } catch (const std::bad_alloc&) {
    return !member.team->fail_call({Code::memory, "no memory"}).ok();
  }
}

// When MPI has won: a rank that failed by itself then would leave the others in MPI's function. (To
// say what was found takes memory, too.)
TEST_P(Trials, all_ranks_decide_without_memory_or_none) {
  set_log_level(Level::debug);
  ::testing::internal::CaptureStderr();
  bool any = true;
  for (uint32_t refused = 0; any; ++refused) {
    SCOPED_TRACE("without allocation " + std::to_string(refused));
    std::barrier mpi(3);
    std::array<bool, 3> failed{};
    run(3, [&](Member& member) {
      ProgramsRank rank(member, mpi, made_up(long_time, short_time));
      rank.only_decides = true;
      SmallAllreduce<int32_t> allreduce(member.rank);
      (void)make_calls(rank, allreduce.call, 64 + 2 * window);
      mpi.arrive_and_wait();  // (a rank may be calls ahead of those that still hear it)
      const bool lacks = member.rank == 0;
      failed[member.rank] = fails_without(lacks ? refused : ~0U, member, allreduce.call);
      if (lacks) any = RefusedAllocations::any();
    });
    EXPECT_EQ(std::ranges::count(failed, failed[0]), 3);
    EXPECT_TRUE(any || !failed[0]);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("MPI is faster, and does these calls from now on"), std::string::npos);
  set_log_level(Level::warning);
}

TEST_P(Trials, are_made_aside_where_bits_may_differ) {
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    ProgramsRank rank(member, mpi, made_up(long_time, short_time));
    SmallAllreduce<double> allreduce(member.rank);
    EXPECT_EQ(make_calls(rank, allreduce.call, 64 + 2 * window),
              expected_ways({64, 0}, WayBy::sluice, WayBy::mpi_then_sluice));
    EXPECT_TRUE(allreduce.has_result(member.size));
    rank.only_decides = true;
    ASSERT_TRUE(rank.make(allreduce.call));
    ASSERT_EQ(rank.way.by, WayBy::mpi);
    // The gap has grown with what is done twice.
    const uint32_t gap = rank.way.of->trial.uneventful();
    EXPECT_GE(gap + 1, Trial::first_gap);
    EXPECT_EQ(make_calls(rank, allreduce.call, gap), std::vector<WayBy>(gap, WayBy::mpi));
    EXPECT_EQ(make_calls(rank, allreduce.call, window),
              expected_ways({0}, WayBy::mpi, WayBy::sluice_then_mpi));
  });
}

// The rules' algorithm is slow, MPI is too, and any other is quick.
MadeUp slow_by(const ProgramsRank& rank, const Algorithm*& ruled) {
  return [&](bool by_mpi) {
    if (!ruled) ruled = rank.way.algorithm;
    return by_mpi || rank.way.algorithm == ruled ? long_time : short_time;
  };
}

// What a rank has found out about calls, of which it makes 200.
template <typename Number>
void try_others(Member& member, std::barrier<>& mpi, bool may_try, bool has_rivals) {
  const Algorithm* ruled = nullptr;
  std::optional<ProgramsRank> rank;
  MadeUp times = [&](bool by_mpi) { return slow_by(*rank, ruled)(by_mpi); };
  rank.emplace(member, mpi, times);
  SmallAllreduce<Number> allreduce(member.rank);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(rank->make(allreduce.call));
    const bool has_result = allreduce.has_result(member.size);
    EXPECT_TRUE(has_result || rank->way.by == WayBy::mpi) << "call " << i;
    EXPECT_FALSE(may_try && is_by_both(rank->way));
  }
  ASSERT_TRUE(rank->way.of);
  const Trial& trial = rank->way.of->trial;
  EXPECT_EQ(trial.candidates() > 2, may_try && has_rivals);
  EXPECT_EQ(trial.choice() > by_mpi, may_try && has_rivals);
  EXPECT_EQ(rank->way.by, WayBy::sluice);
  EXPECT_EQ(rank->way.algorithm != ruled, may_try && has_rivals);
}

TEST_P(Trials, try_other_algorithms_where_they_may) {
  for (const char* choice : {"guard", "free"}) {
    SCOPED_TRACE(choice);
    change = [&](Rank, Process& process) { process.knobs.choice = choice; };
    std::barrier mpi(3);
    run(3, [&](Member& member) {
      const bool is_free = std::string(choice) == "free", has_rivals = !GetParam().arena;
      try_others<int32_t>(member, mpi, is_free, has_rivals);
      try_others<double>(member, mpi, is_free, has_rivals);
    });
  }
}

TEST_P(Trials, look_at_the_time_spent_on_any_rank) {
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    ProgramsRank rank(member, mpi, made_up(short_time, short_time));
    if (member.rank == 1) rank.spent = Trial::long_enough;
    SmallAllreduce<int32_t> allreduce(member.rank);
    EXPECT_EQ(make_calls(rank, allreduce.call, 7 + window),
              expected_ways({7}, WayBy::sluice, WayBy::mpi));
  });
}

TEST_P(Trials, need_all_ranks_samples) {
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    const bool loses = member.rank == 2;
    ProgramsRank rank(member, mpi, [=](bool by_mpi) -> float {
      if (loses) return Sample::unknown;
      return by_mpi ? short_time : long_time;
    });
    rank.only_decides = true;
    std::array<std::byte, 512> memory{};
    const Call broadcast = small_call(Collective::broadcast, memory);
    (void)make_calls(rank, broadcast, 1000);
    ASSERT_TRUE(rank.way.of);
    EXPECT_EQ(rank.way.of->trial.choice(), ruled);
    EXPECT_EQ(rank.way.of->trial.state(), Trial::State::settled);
  });
}

// The team cache hands over what was learned.
TEST_P(Trials, outlive_communicators) {
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    std::array<std::byte, 512> memory{};
    const Call broadcast = small_call(Collective::broadcast, memory);
    std::vector<WayBy> log;
    Hints none;
    auto team = Team::form(member.process, member.bootstrap, "first", &none);
    for (int communicator = 0; communicator < 25; ++communicator) {
      ASSERT_TRUE(team.ok()) << team.status().message();
      Member of_it{member.process, member.rank, member.size, team->get(), {}, {}, member.bootstrap};
      ProgramsRank rank(of_it, mpi, made_up(long_time, short_time));
      rank.only_decides = true;
      append(&log, make_calls(rank, broadcast, 5));
      Team::retire(member.process, std::move(*team));
      team = Team::form(member.process, member.bootstrap, "next", &none);
    }
    // As if they were one.
    std::vector<WayBy> expected = expected_ways({64, 0}, WayBy::sluice, WayBy::mpi);
    expected.resize(125, WayBy::mpi);
    EXPECT_EQ(log, expected);
  });
}

// Calls of a kind that must not be tried, and what decides that.
struct Untried {
  const char* name;
  std::function<void(Rank, Process&)> change;
  std::function<void(Call&)> shape;
  Hints hints;
};

void user_defined(const void*, const void*, void*, size_t, const void*) {}

void reduce_by_user(Call& call) { call.reduction = {user_defined, nullptr, true, {}}; }

void reduce_as(Call& call, Op op, Type type) {
  call.reduction.kernel = find_kernel(op, type);
  call.reduction.arithmetic = Arithmetic{type, op};
  call.input.count = call.output.count = call.bytes / size_of(type);
  call.element = size_of(type);
}

const Untried untried[] = {
    {"by rules", [](Rank, Process& process) { process.knobs.choice = "rules"; }, {}, {}},
    {"by a variable",
     [](Rank, Process& process) {
       process.knobs.algorithm[static_cast<uint32_t>(Collective::allreduce)] = "recursive_doubling";
     },
     {},
     {}},
    {"by a hint", {}, {}, {{"sluice_allreduce", "recursive_doubling"}}},
    {"with TLS", [](Rank, Process& process) { process.knobs.tls = "psk"; }, {}, {}},
    {"reproducibly", [](Rank, Process& process) { process.knobs.reproducible = true; }, {}, {}},
    {"by one rank's deadline",
     [](Rank rank, Process& process) { process.knobs.timeout = rank == 1 ? 250 : 0; },
     {},
     {}},
    {"of a user's operation", {}, reduce_by_user, {}},
    {"of 8 bits", {}, [](Call& call) { reduce_as(call, Op::sum, Type::int8); }, {}},
    {"of 16 bits", {}, [](Call& call) { reduce_as(call, Op::prod, Type::uint16); }, {}},
    {"of unsigned integers", {}, [](Call& call) { reduce_as(call, Op::max, Type::uint32); }, {}},
    {"of offsets", {}, [](Call& call) { reduce_as(call, Op::min, Type::int64); }, {}},
    {"of NaNs", {}, [](Call& call) { reduce_as(call, Op::max, Type::float32); }, {}},
    {"of long doubles", {}, [](Call& call) { reduce_as(call, Op::sum, Type::float80); }, {}},
    {"of bits", {}, [](Call& call) { reduce_as(call, Op::bit_and, Type::int32); }, {}},
    {"of complex factors", {}, [](Call& call) { reduce_as(call, Op::prod, Type::complex64); }, {}},
    {"of nothing", {}, [](Call& call) { call.bytes = 0; }, {}},
    {"of 64 MiB", {}, [](Call& call) { call.bytes = size_t{64} << 20; }, {}},
    {"in place", {}, [](Call& call) { call.stays = true; }, {}},
};

TEST_P(Trials, are_not_made_of_what_the_user_decides) {
  for (const Untried& each : untried) {
    SCOPED_TRACE(each.name);
    if (each.change) change = each.change;
    std::barrier mpi(3);
    run(
        3,
        [&](Member& member) {
          ProgramsRank rank(member, mpi, made_up(long_time, short_time));
          rank.only_decides = true;
          rank.spent = Trial::long_enough;
          SmallAllreduce<int32_t> allreduce(member.rank);
          if (each.shape) each.shape(allreduce.call);
          EXPECT_EQ(make_calls(rank, allreduce.call, 200), std::vector<WayBy>(200, WayBy::sluice));
        },
        [&](Rank) { return each.hints; });
    change = [](Rank, Process&) {};
  }
}

TEST_P(Trials, are_made_of_the_rest) {
  change = [](Rank, Process& process) {
    process.knobs.reproducible = true;
    process.knobs.algorithm[static_cast<uint32_t>(Collective::allreduce)] = "recursive_doubling";
  };
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    std::array<std::byte, 512> memory{};
    for (const auto collective : {Collective::broadcast, Collective::barrier}) {
      ProgramsRank rank(member, mpi, made_up(long_time, short_time));
      rank.only_decides = true;
      (void)make_calls(rank, small_call(collective, memory), 64 + 2 * window + 1);
      EXPECT_EQ(rank.way.by, WayBy::mpi) << to_string(collective);
    }
  });
  change = [](Rank, Process&) {};
  run(3, [&](Member& member) {
    ProgramsRank rank(member, mpi, made_up(long_time, short_time));
    rank.only_decides = true;
    SmallAllreduce<int32_t> allreduce(member.rank);
    reduce_as(allreduce.call, Op::sum, Type::float32);
    const std::vector<WayBy> log = make_calls(rank, allreduce.call, 64 + 2 * window + 1);
    EXPECT_EQ(std::ranges::count(log, WayBy::mpi_then_sluice), 8);
    EXPECT_EQ(log.back(), WayBy::mpi) << "it is computed right";
  });
}

TEST_P(Trials, leave_rules_of_the_user_alone) {
  const std::string path = ::testing::TempDir() + "sluice-trials-rules-" + GetParam().name;
  std::ofstream(path) << "allreduce * bytes:0-31 -> recursive_doubling\n"
                         "broadcast * -> mpi\n";
  change = [&](Rank, Process& process) { process.knobs.rules = path; };
  std::barrier mpi(3);
  run(3, [&](Member& member) {
    ProgramsRank rank(member, mpi, made_up(long_time, short_time));
    rank.only_decides = true;
    SmallAllreduce<int32_t> allreduce(member.rank);
    Call ruled = allreduce.call;
    ruled.input.count = ruled.output.count = 4;
    ruled.bytes = 16;
    std::array<std::byte, 512> memory{};
    const Call broadcast = small_call(Collective::broadcast, memory);
    EXPECT_EQ(make_calls(rank, ruled, 200), std::vector<WayBy>(200, WayBy::sluice));
    EXPECT_EQ(make_calls(rank, broadcast, 200), std::vector<WayBy>(200, WayBy::mpi));
    EXPECT_FALSE(rank.way.of);
    (void)make_calls(rank, allreduce.call, 64 + 2 * window + 1);
    EXPECT_EQ(rank.way.by, WayBy::mpi) << "the rules that ship decide about it";
  });
  std::remove(path.c_str());
}

// With real times: of seven of Sluice's calls, of which each takes 40 ms longer, the trials begin
// at once. (On a machine that is so busy that MPI's take as long, it lasts until it is less so.)
TEST_P(Trials, find_out_what_is_slow) {
  std::barrier mpi(2);
  run(2, [&](Member& member) {
    std::array<std::byte, 512> memory{};
    const Call call = small_call(Collective::barrier, memory);
    Result<Delay> delay = Delay::parse("flat:40000");
    ASSERT_TRUE(delay.ok());
    Way way;
    do {
      ASSERT_TRUE(member.team->find_way(call, {}, &way).ok());
      way.begin();
      if (way.by == WayBy::mpi) {
        mpi.arrive_and_wait();
      } else {
        ASSERT_TRUE(member.team->run_by(*way.algorithm, call).ok());
        delay->prolong("flat");
      }
      way.end();
    } while (way.of->trial.choice() == ruled);
    EXPECT_EQ(way.by, WayBy::mpi);
    EXPECT_FALSE(way.is_timed);
  });
}

INSTANTIATE_TEST_SUITE_P(Carriers, Trials, ::testing::ValuesIn(trial_carriers),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::testing
