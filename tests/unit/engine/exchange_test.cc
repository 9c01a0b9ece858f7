// SPDX-License-Identifier: BSD-3-Clause
//
// A team's own exchanges, and calls that an executor of somebody else's runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/engine/executor.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "transports/tcp/tcp.h"

namespace sluice::testing {
namespace {

Call large_allreduce() {
  Call call;
  call.collective = Collective::allreduce;
  call.bytes = size_t{1} << 20;
  return call;
}

// An allgather of one number of each rank.
Status gather_numbers(Member& member, uint64_t mine, std::vector<uint64_t>* all) {
  all->assign(member.size, 0);
  Call call;
  call.collective = Collective::allgather;
  call.bytes = all->size() * sizeof(uint64_t);
  call.input.base = reinterpret_cast<std::byte*>(&mine);
  call.output.base = reinterpret_cast<std::byte*>(all->data());
  call.input.count = call.output.count = sizeof(uint64_t);
  return member.team->run(call);
}

Status exchange_numbers(Member& member, uint64_t mine, std::vector<uint64_t>* all) {
  all->assign(member.size, 0);
  const Call call = large_allreduce();
  return member.team->exchange(call, std::as_bytes(std::span(&mine, 1)),
                               std::as_writable_bytes(std::span(*all)));
}

struct ExchangeCarrier {
  const char* name;
  bool tcp, arena;
};

class Exchange : public ::testing::TestWithParam<ExchangeCarrier> {
 protected:
  void run(Rank ranks, const Body& body, const Hinter& hints = {}) {
    const EndpointMaker endpoints = [&](Rank, const ProcessId& id) -> std::unique_ptr<Endpoint> {
      if (!GetParam().tcp) return hub_.endpoint(id);
      TcpOptions options;
      options.self = id;
      auto made = make_tcp_endpoint(options);
      EXPECT_TRUE(made.ok()) << made.status().message();
      return std::move(*made);
    };
    const Adjust adjust = [&](Rank rank, Process& process) {
      process.knobs.timeout = 60;
      change(rank, process);
      if (!GetParam().arena) return;
      process.arenas = arenas_.source();
      process.host = 1;
    };
    on_ranks(ranks, endpoints, adjust, body, hints);
  }

  Adjust change = [](Rank, Process&) {};

 private:
  LoopbackHub hub_;
  ArenaHub arenas_;
};

TEST_P(Exchange, stands_between_calls) {
  for (const Rank ranks : {2U, 3U, 5U}) {
    run(ranks, [](Member& member) {
      std::vector<uint64_t> all;
      for (uint64_t round = 0; round < 40; ++round) {
        const Status status = round % 3 == 1
                                  ? gather_numbers(member, round * 100 + member.rank, &all)
                                  : exchange_numbers(member, round * 100 + member.rank, &all);
        ASSERT_TRUE(status.ok()) << status.message();
        for (Rank rank = 0; rank < member.size; ++rank) EXPECT_EQ(all[rank], round * 100 + rank);
      }
    });
  }
}

// One that is longer than a piece, whose pieces' times are told.
TEST_P(Exchange, takes_any_length) {
  for (const size_t length : {Team::exchange_at_once, Team::exchange_at_once + 1, size_t{1000}}) {
    run(3, [&](Member& member) {
      std::vector<std::byte> mine(length), all(member.size * length);
      for (size_t i = 0; i < length; ++i) mine[i] = std::byte(i * 7 + member.rank);
      std::vector<ExchangeTimes> times;
      const Call call = large_allreduce();
      ASSERT_TRUE(member.team->exchange(call, mine, all, member.rank == 1 ? &times : nullptr).ok());
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i], std::byte(i % length * 7 + i / length)) << i << " of " << length;
      }
      std::vector<uint64_t> numbers;
      ASSERT_TRUE(gather_numbers(member, member.rank, &numbers).ok());
      if (member.rank != 1) return;
      const size_t pieces = (length + Team::exchange_at_once - 1) / Team::exchange_at_once;
      ASSERT_EQ(times.size(), pieces);
      for (size_t i = 0; i < pieces; ++i) {
        EXPECT_LT(times[i].entry, times[i].exit);
        EXPECT_LE(times[i == 0 ? 0 : i - 1].entry, times[i].entry);
      }
    });
  }
}

// Also where the program's allgathers are MPI's.
TEST_P(Exchange, is_never_left_to_mpi) {
  const Hinter hints = [](Rank) { return Hints{{"sluice_allgather", "mpi"}}; };
  run(
      3,
      [](Member& member) {
        std::vector<uint64_t> all;
        ASSERT_TRUE(exchange_numbers(member, member.rank, &all).ok());
        EXPECT_EQ(all, (std::vector<uint64_t>{0, 1, 2}));
        Call call;
        call.collective = Collective::allgather;
        EXPECT_FALSE(member.team->carries(call));
        EXPECT_EQ(member.team->say_of(call, Carrier::ipc), Team::Say::no);
        call.collective = Collective::allreduce;
        EXPECT_NE(member.team->say_of(call, Carrier::ipc), Team::Say::no);
      },
      hints);
}

// Even if it moves as many bytes as the call that another rank is in. The call is named by the
// number that the program counts.
TEST_P(Exchange, is_no_call_of_the_programs) {
  run(2, [](Member& member) {
    std::vector<uint64_t> all;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange_numbers(member, 1, &all).ok());
    ASSERT_TRUE(gather_numbers(member, 2, &all).ok());
    const Status status =
        member.rank == 0 ? exchange_numbers(member, 1, &all) : gather_numbers(member, 1, &all);
    const std::string message = status.message();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(message.find(member.rank == 0 ? "allreduce" : "allgather"), std::string::npos)
        << message;
    EXPECT_NE(message.find("(call 2 on "), std::string::npos) << message;
    EXPECT_NE(message.find("the vote before a large allreduce"), std::string::npos) << message;
    EXPECT_FALSE(exchange_numbers(member, 1, &all).ok()) << "errors are sticky";
  });
}

TEST_P(Exchange, reports_late_ranks) {
  std::atomic<bool> given_up{false};
  run(2, [&](Member& member) {
    std::vector<uint64_t> all;
    ASSERT_TRUE(gather_numbers(member, 2, &all).ok());
    if (member.rank == 0) member.process.knobs.timeout = 0.2;  // not of the set-up
    while (member.rank == 1 && !given_up) {
    }
    const Status status = exchange_numbers(member, 1, &all);
    if (member.rank == 1) return;  // it may have got what it needs
    EXPECT_NE(status.message().find("for rank 1"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("allreduce (call 2 on "), std::string::npos)
        << status.message();
    given_up = true;
  });
}

constexpr Algorithm elsewhere{
    .collective = Collective::allreduce, .name = "elsewhere", .help = "in another library"};

// Waits until all ranks have started; what it does is up to the test.
class Elsewhere final : public Executor {
 public:
  explicit Elsewhere(std::atomic<Rank>& started, Rank ranks) : started_(started), ranks_(ranks) {}

  Status start(const Algorithm&, const Call&, uint32_t) override {
    if (!at_start.ok()) return at_start;
    ++started_;
    return {};
  }
  State advance() override {
    if (!later.ok()) return State::failed;
    return started_ < ranks_ ? State::waiting : State::done;
  }
  Failure failure() const override { return {later, {}}; }
  void cancel() override { ++cancelled; }
  bool is_quiet() override { return ++asked > asks_until_quiet; }
  std::string awaited() const override { return "the other library"; }
  bool notices_death() const override { return false; }
  void trim() override {}

  Status at_start, later;
  int cancelled = 0, asked = 0, asks_until_quiet = 0;

 private:
  std::atomic<Rank>& started_;
  const Rank ranks_;
};

TEST_P(Exchange, lets_others_run_calls) {
  std::atomic<Rank> started{0};
  run(3, [&](Member& member) {
    member.process.knobs.stats = "on";
    Elsewhere executor(started, member.size);
    const Call call = large_allreduce();
    std::vector<uint64_t> all;
    ASSERT_TRUE(exchange_numbers(member, 1, &all).ok());
    ASSERT_TRUE(member.team->run_with(executor, elsewhere, call).ok());
    ASSERT_TRUE(gather_numbers(member, 1, &all).ok());
    EXPECT_EQ(executor.cancelled, 0);
  });
}

// One rank fails; the others wait for it in vain. (All have made the exchange then: of one that is
// still in it, that would fail.)
class OneFails : public Exchange {
 protected:
  void fail(const std::function<void(Member&, Elsewhere&)>& fault, const std::string& expected) {
    std::atomic<Rank> started{0}, exchanged{0};
    run(3, [&](Member& member) {
      Elsewhere executor(started, member.size + 1);
      executor.asks_until_quiet = 100;
      if (member.rank == 1) fault(member, executor);
      const Call call = large_allreduce();
      std::vector<uint64_t> all;
      const bool good = exchange_numbers(member, 1, &all).ok();
      for (++exchanged; exchanged < member.size;) std::this_thread::yield();
      ASSERT_TRUE(good);
      const Status status = member.team->run_with(executor, elsewhere, call);
      EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
      EXPECT_EQ(executor.cancelled, 1);
      EXPECT_GT(executor.asked, 100) << "the program's memory may still be touched";
      EXPECT_FALSE(gather_numbers(member, 1, &all).ok());
    });
  }
};

TEST_P(OneFails, at_its_start) {
  fail([](Member&, Elsewhere& by) { by.at_start = {Code::memory, "no room"}; }, "no room");
}

TEST_P(OneFails, later) {
  fail([](Member&, Elsewhere& by) { by.later = {Code::unavailable, "it broke"}; }, "it broke");
}

TEST_P(OneFails, by_its_timeout) {
  fail([](Member& member, Elsewhere&) { member.process.knobs.timeout = 0.1; },
       "s for the other library (SLUICE_TIMEOUT)");
}

const ExchangeCarrier exchange_carriers[] = {{"loopback", false, false},
                                             {"tcp", true, false},
                                             {"loopback_with_arena", false, true},
                                             {"tcp_with_arena", true, true}};
const auto name_of_exchange_carrier = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Carriers, Exchange, ::testing::ValuesIn(exchange_carriers),
                         name_of_exchange_carrier);
INSTANTIATE_TEST_SUITE_P(Carriers, OneFails, ::testing::ValuesIn(exchange_carriers),
                         name_of_exchange_carrier);

// A process that ends leaves no rank in the other library.
TEST(Death, is_noticed_in_another_library) {
  LoopbackHub hub;
  ArenaHub arenas;
  std::atomic<Rank> started{0}, gathered{0};
  const EndpointMaker endpoints = [&](Rank, const ProcessId& id) { return hub.endpoint(id); };
  const Adjust adjust = [&](Rank, Process& process) {
    process.knobs.timeout = 60;
    process.arenas = arenas.source();
    process.host = 1;
  };
  on_ranks(3, endpoints, adjust, [&](Member& member) {
    const Call call = large_allreduce();
    std::vector<uint64_t> all;
    const bool good = gather_numbers(member, 1, &all).ok();
    for (++gathered; gathered < member.size;) std::this_thread::yield();
    ASSERT_TRUE(good);
    if (member.rank == 2) return arenas.kill(2);
    Elsewhere executor(started, member.size);
    const Status status = member.team->run_with(executor, elsewhere, call);
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("its process is gone"), std::string::npos) << status.message();
  });
}

}  // namespace
}  // namespace sluice::testing
