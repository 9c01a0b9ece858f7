// SPDX-License-Identifier: BSD-3-Clause
//
// Several calls of a team in flight at once, beside some that block: started in one order on all
// ranks, driven in any.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "src/engine/schedule.h"
#include "src/engine/team_halves.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"
#include "transports/tcp/tcp.h"

namespace sluice::testing {
namespace {

constexpr size_t most_count = 40000;  // some calls have several segments

uint32_t operand_of(Rank rank, size_t i, uint32_t which) {
  return rank * 1000003 + static_cast<uint32_t>(i) * 7 + which;
}

// A call on memory of its own, and what must come of it.
class StartedCall final : public CallOwner {
 public:
  // shared: equal on all ranks.
  StartedCall(std::mt19937& shared, Rank rank, Rank ranks) : rank_(rank), ranks_(ranks) {
    constexpr Collective kinds[] = {Collective::allreduce, Collective::broadcast,
                                    Collective::allgather, Collective::reduce};
    which_ = static_cast<uint32_t>(shared());
    call_.collective = kinds[shared() % std::size(kinds)];
    count_ = shared() % 3 == 0 ? shared() % most_count : shared() % 64;
    if (is_rooted(call_.collective)) call_.root = static_cast<Rank>(shared() % ranks);
    call_.element = sizeof(uint32_t);
    if (is_reducing(call_.collective)) call_.reduction.kernel = find_kernel(Op::sum, Type::uint32);
    input_.resize(count_);
    output_.resize(call_.collective == Collective::allgather ? count_ * ranks : count_);
    fill();
    call_.input.base = reinterpret_cast<std::byte*>(
        call_.collective == Collective::broadcast ? output_.data() : input_.data());
    call_.output.base = reinterpret_cast<std::byte*>(output_.data());
    call_.input.count = call_.output.count = count_;
    call_.bytes = output_.size() * sizeof(uint32_t);
  }
  StartedCall(const StartedCall&) = delete;
  StartedCall& operator=(const StartedCall&) = delete;

  const Call& call() const { return call_; }
  // Other data in the same memory, for another start.
  void renew() {
    has_ended_ = false;
    ++which_;
    fill();
  }
  void ended(const Status& status) override {
    EXPECT_FALSE(has_ended_) << "told twice";
    has_ended_ = true;
    status_ = status;
  }
  bool has_ended() const { return has_ended_; }
  const Status& status() const { return status_; }

  void check() const {
    if (call_.collective == Collective::reduce && rank_ != call_.root) return;
    for (size_t i = 0; i < output_.size(); ++i) {
      ASSERT_EQ(output_[i], expected(i))
          << to_string(call_.collective) << " of " << count_ << ", element " << i;
    }
  }

 private:
  void fill() {
    for (size_t i = 0; i < count_; ++i) input_[i] = operand_of(rank_, i, which_);
    std::ranges::fill(output_, 0);
    if (call_.collective == Collective::broadcast && rank_ == call_.root) output_ = input_;
  }
  uint32_t expected(size_t i) const {
    switch (call_.collective) {
      case Collective::broadcast:
        return operand_of(call_.root, i, which_);
      case Collective::allgather:
        return operand_of(static_cast<Rank>(i / count_), i % count_, which_);
      default:
        break;
    }
    uint32_t sum = 0;
    for (Rank rank = 0; rank < ranks_; ++rank) sum += operand_of(rank, i, which_);
    return sum;
  }

  const Rank rank_, ranks_;
  bool has_ended_ = false;
  Status status_;
  uint32_t which_ = 0;
  size_t count_ = 0;
  std::vector<uint32_t> input_, output_;
  Call call_;
};

Call empty_call() {
  Call call;
  call.collective = Collective::barrier;
  return call;
}

struct InFlightCarrier {
  const char* name;
  bool tcp, arena;
  bool hidden = false;  // a rank's memory, from the kernel's copies
};

class InFlight : public ::testing::TestWithParam<InFlightCarrier> {
 protected:
  void run(Rank ranks, const Body& body) {
    if (GetParam().hidden) arenas_.hide_memory_of(1);
    const EndpointMaker endpoints = [&](Rank, const ProcessId& id) -> std::unique_ptr<Endpoint> {
      if (!GetParam().tcp) return hub_.endpoint(id);
      TcpOptions options;
      options.self = id;
      auto made = make_tcp_endpoint(options);
      EXPECT_TRUE(made.ok()) << made.status().message();
      return std::move(*made);
    };
    const Adjust adjust = [&](Rank, Process& process) {
      process.knobs.timeout = 60;
      if (!GetParam().arena) return;
      process.arenas = arenas_.source();
      process.host = 1;
    };
    on_ranks(ranks, endpoints, adjust, body);
  }

  const uint32_t seed_ = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());

 private:
  LoopbackHub hub_;
  ArenaHub arenas_;
};

Status start(Member& member, const Call& call, CallOwner& owner) {
  return member.team->halves().nonblocking().start(*member.team->choose_nonblocking(call), call,
                                                   owner);
}

void drive(Member& member) {
  member.process.endpoint->progress();
  member.team->halves().nonblocking().advance();
  member.team->halves().nonblocking().watch({});
}

void finish(Member& member, const StartedCall& trial) {
  while (!trial.has_ended()) drive(member);
}

// Some calls, some of them blocking and between the others; each rank drives and ends them as it
// likes.
void run_some(Member& member, std::mt19937& shared, std::mt19937& own) {
  std::vector<std::unique_ptr<StartedCall>> trials;
  const size_t calls = 2 + shared() % 3;
  for (size_t i = 0; i < calls; ++i) {
    StartedCall& trial =
        *trials.emplace_back(std::make_unique<StartedCall>(shared, member.rank, member.size));
    const Status started = start(member, trial.call(), trial);
    ASSERT_TRUE(started.ok()) << started.message();
    if (shared() % 4 == 0) {
      while (own() % 2 == 0) drive(member);
    }
  }
  for (uint32_t turns = own() % 50; turns > 0; --turns) drive(member);
  std::shuffle(trials.begin(), trials.end(), own);
  for (const auto& trial : trials) {
    finish(member, *trial);
    ASSERT_TRUE(trial->status().ok()) << trial->status().message();
    trial->check();
  }
  EXPECT_TRUE(member.team->is_idle());
  StartedCall blocking(shared, member.rank, member.size);
  const Status status = member.team->run(blocking.call());
  ASSERT_TRUE(status.ok()) << status.message();
  blocking.check();
}

TEST_P(InFlight, ends_in_any_order) {
  for (Rank ranks = 2; ranks <= 5; ++ranks) {
    run(ranks, [&](Member& member) {
      std::mt19937 shared(seed_ + ranks), own(seed_ + 100 * ranks + member.rank);
      for (int round = 0; round < sweep(12, 12, 4); ++round) {
        run_some(member, shared, own);
        if (::testing::Test::HasFatalFailure()) return;
      }
    });
  }
}

// A persistent request: a part of the team, and its call.
struct Repeated {
  Repeated(Member& member, std::mt19937& shared)
      : call(shared, member.rank, member.size), part(member.team->halves().add()) {}
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  StartedCall call;
  NonblockingTeam* const part;
  const Algorithm* by = nullptr;
};

// All ranks find the same cells free.
void choose_way(Member& member, Repeated& one) {
  TeamHalves& halves = member.team->halves();
  const FreeCells free = halves.free_cells();
  const Algorithm* const by_links = member.team->choose_nonblocking(one.call.call(), false);
  one.by = member.team->choose_nonblocking(one.call.call(), free.sets != 0);
  if (one.by != by_links)
    halves.give_cells(*one.part, static_cast<uint32_t>(std::countr_zero(free.sets)));
}

// Each rank starts them in an order of its own.
void repeat(Member& member, std::vector<std::unique_ptr<Repeated>>& requests, std::mt19937& own) {
  std::shuffle(requests.begin(), requests.end(), own);
  for (const auto& each : requests) {
    each->call.renew();
    const Status started = each->part->start(*each->by, each->call.call(), each->call);
    ASSERT_TRUE(started.ok()) << started.message();
    for (uint32_t turns = own() % 3; turns > 0; --turns) each->part->advance();
  }
  std::shuffle(requests.begin(), requests.end(), own);
  for (const auto& each : requests) {
    while (!each->call.has_ended()) {
      member.process.endpoint->progress();
      for (const auto& any : requests) any->part->advance();
    }
    ASSERT_TRUE(each->call.status().ok()) << each->call.status().message();
    each->call.check();
  }
}

TEST_P(InFlight, starts_persistent_requests_in_any_order) {
  run(3, [&](Member& member) {
    std::mt19937 shared(seed_), own(seed_ + 1 + member.rank);
    ASSERT_TRUE(member.team->run(empty_call()).ok());
    for (int round = 0; round < sweep(4, 4, 2); ++round) {
      std::vector<std::unique_ptr<Repeated>> requests;
      for (int i = 0; i < 12; ++i) {  // more than there are cells for
        requests.push_back(std::make_unique<Repeated>(member, shared));
        choose_way(member, *requests.back());
      }
      EXPECT_FALSE(member.team->is_idle());
      for (int start = 0; start < 6; ++start) {
        repeat(member, requests, own);
        if (::testing::Test::HasFatalFailure()) return;
      }
      for (const auto& each : requests) member.team->halves().remove(*each->part);
      EXPECT_TRUE(member.team->is_idle());
    }
  });
}

// The last part of a team.
TEST_P(InFlight, has_so_many_persistent_requests) {
  run(2, [&](Member& member) {
    ASSERT_TRUE(member.team->run(empty_call()).ok());
    TeamHalves& halves = member.team->halves();
    uint32_t added = 0;
    while (NonblockingTeam* const part = halves.add()) {
      halves.remove(*part);
      ++added;
    }
    EXPECT_EQ(added, (1U << 16) - 2);
    EXPECT_TRUE(member.team->is_idle());
  });
}

// Ranks disagree about a call, and the one before it ends in the same turn.
TEST_P(InFlight, fails_behind_one_that_has_just_ended) {
  run(2, [&](Member& member) {
    std::mt19937 shared(seed_);
    const Call barrier = empty_call();
    ASSERT_TRUE(member.team->run(barrier).ok());
    StartedCall first(shared, member.rank, member.size), second(shared, member.rank, member.size);
    StartedCall last(shared, member.rank, member.size);
    uint32_t number = 0, sum = 0;
    Call reduction = empty_call();
    reduction.collective = Collective::allreduce;
    reduction.bytes = reduction.element = sizeof number;
    reduction.input.base = reinterpret_cast<std::byte*>(&number);
    reduction.output.base = reinterpret_cast<std::byte*>(&sum);
    reduction.input.count = reduction.output.count = 1;
    reduction.reduction.kernel = find_kernel(Op::sum, Type::uint32);
    ASSERT_TRUE(start(member, barrier, first).ok());
    ASSERT_TRUE(start(member, member.rank == 0 ? barrier : reduction, second).ok());
    ASSERT_TRUE(start(member, barrier, last).ok());
    const std::byte here{1};
    std::byte all[2]{};
    ASSERT_TRUE(member.bootstrap.allgather({&here, 1}, all).ok());  // both have started all
    finish(member, last);
    finish(member, second);  // (the other rank's abort may have ended the last one first)
    EXPECT_TRUE(first.has_ended());
    EXPECT_FALSE(second.status().ok());
  });
}

// A program that only asks whether its call has ended learns that another rank gave up. Calls that
// block go on, unless the ranks share memory: both halves of a team may fail then.
TEST_P(InFlight, ends_when_a_rank_gives_up) {
  run(3, [&](Member& member) {
    std::mt19937 shared(seed_);
    StartedCall one(shared, member.rank, member.size), two(shared, member.rank, member.size);
    const Call barrier = empty_call();
    ASSERT_TRUE(member.team->run(barrier).ok());
    if (member.rank == 2) {
      EXPECT_FALSE(member.team->halves().nonblocking().fail_call({Code::memory, "no room"}).ok());
    } else {
      StartedCall* const both[] = {&one, &two};
      for (StartedCall* each : both) {
        if (Status status = start(member, barrier, *each); !status.ok()) each->ended(status);
      }
      for (const StartedCall* each : both) {
        finish(member, *each);
        EXPECT_NE(each->status().message().find("no room"), std::string::npos)
            << each->status().message();
      }
      StartedCall late(shared, member.rank, member.size);
      EXPECT_FALSE(start(member, barrier, late).ok());
      EXPECT_FALSE(late.has_ended());
    }
    if (!GetParam().arena) {
      EXPECT_TRUE(member.team->run(barrier).ok());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Carriers, InFlight,
                         ::testing::Values(InFlightCarrier{"loopback", false, false},
                                           InFlightCarrier{"tcp", true, false},
                                           InFlightCarrier{"loopback_with_arena", false, true},
                                           InFlightCarrier{"tcp_with_arena", true, true},
                                           InFlightCarrier{"hidden", false, true, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ScheduleCache, keeps_what_a_call_uses) {
  const Algorithm* const algorithm = find_algorithm(Collective::broadcast, "binomial");
  ScheduleCache cache;
  constexpr Rank ranks = 3 * ScheduleCache::capacity;
  const Shape shape{.rank = 1, .size = ranks};
  const SchedulePin used = cache.get(algorithm, 0, shape);
  const Schedule* const first = &*used;
  for (Rank root = 1; root < ranks; ++root) {
    EXPECT_EQ((*cache.get(algorithm, root, shape)).root(), root);
  }
  EXPECT_EQ(&*cache.get(algorithm, 0, shape), first);
  EXPECT_EQ((*used).root(), 0U);
}

}  // namespace
}  // namespace sluice::testing
