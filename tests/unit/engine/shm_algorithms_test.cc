// SPDX-License-Identifier: BSD-3-Clause
//
// The engine runs shared-memory algorithms: calls without pause, order of operands, and ranks that
// are late, in another call, or dead.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "collectives/shm/shm.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/stopwatch.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

class ShmAlgorithms : public ::testing::Test {
 protected:
  void run(Rank ranks, const Body& body) {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust share = [&](Rank, Process& process) {
      process.arenas = arenas_.source();
      process.host = 1;
    };
    on_ranks(ranks, endpoints, share, body);
  }

  LoopbackHub hub_;
  ArenaHub arenas_;
};

template <typename T>
Call call_of(Collective collective, std::vector<T>& input, std::vector<T>& output, Rank root = 0) {
  Call call;
  call.collective = collective;
  call.root = root;
  call.element = sizeof(T);
  call.input = {reinterpret_cast<std::byte*>(input.data()), input.size(), {}, {}};
  call.output = {reinterpret_cast<std::byte*>(output.data()), output.size(), {}, {}};
  call.bytes = std::max(input.size(), output.size()) * sizeof(T);
  return call;
}

Call barrier() { return {}; }

// x -> a x + b, modulo 2^32: composition is associative and does not commute.
struct Map {
  uint32_t a, b;
  bool operator==(const Map&) const = default;
};

void compose(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto *l = static_cast<const Map*>(left), *r = static_cast<const Map*>(right);
  auto* const to = static_cast<Map*>(out);
  for (size_t i = 0; i < n; ++i) to[i] = Map{l[i].a * r[i].a, l[i].a * r[i].b + l[i].b};
}

Map map_of(Rank rank, size_t index, uint32_t round) {
  return {2 * rank + 3, static_cast<uint32_t>(index * 31 + rank + round)};
}

std::vector<Map> maps_of(Rank rank, size_t count, uint32_t round) {
  std::vector<Map> maps(count);
  for (size_t i = 0; i < count; ++i) maps[i] = map_of(rank, i, round);
  return maps;
}

std::vector<Map> composed(Rank ranks, size_t count, uint32_t round) {
  std::vector<Map> result = maps_of(0, count, round);
  for (Rank rank = 1; rank < ranks; ++rank) {
    const std::vector<Map> next = maps_of(rank, count, round);
    compose(result.data(), next.data(), result.data(), count, nullptr);
  }
  return result;
}

// A random series of calls, equal on all ranks, that needs no barriers. Each rank has random
// delays.
TEST_F(ShmAlgorithms, CallsInARowKeepApart) {
  const auto seed = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());
  const uint32_t rounds = sweep(300U, 300U, 100U);
  for (const Rank ranks : {2U, 3U, 5U}) {
    run(ranks, [&](Member& member) {
      ASSERT_TRUE(member.team) << member.formed.message();
      std::mt19937 common(seed), own(seed + member.rank + 1);
      for (uint32_t round = 0; round < rounds; ++round) {
        const uint32_t kind = common() % 6;
        const Rank root = common() % ranks;
        const size_t count = std::array<size_t, 5>{0, 1, 5, 600, 12000}[common() % 5];
        if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
        std::vector<Map> input = maps_of(member.rank, count, round), output(count);
        Call call = barrier();
        if (kind == 0) call = call_of(Collective::allreduce, input, output);
        if (kind == 1) call = call_of(Collective::reduce, input, output, root);
        if (kind == 2) call = call_of(Collective::broadcast, input, input, root);
        if (kind == 4) call = call_of(Collective::scan, input, output);
        if (kind == 5) call = call_of(Collective::exscan, input, output);
        if (is_reducing(call.collective)) call.reduction = {compose, nullptr, false};
        ASSERT_TRUE(member.team->carries(call));
        const Status status = member.team->run(call);
        ASSERT_TRUE(status.ok()) << status.message();
        const Rank operands = operands_of(call.collective, member.rank, ranks);
        if (kind == 0 || (kind == 1 && member.rank == root) || (kind >= 4 && operands > 0)) {
          ASSERT_EQ(output, composed(operands, count, round))
              << "round " << round << " seed " << seed;
        }
        if (kind == 2) {
          ASSERT_EQ(input, maps_of(root, count, round)) << "seed " << seed;
        }
      }
    });
  }
}

TEST_F(ShmAlgorithms, ARankThatCannotReachTheMemoryKeepsAllOutOfIt) {
  arenas_.blind(1);
  run(3, [](Member& member) {
    ASSERT_TRUE(member.team);
    EXPECT_TRUE(member.team->run(barrier()).ok()) << "by the other transport";
  });
}

TEST_F(ShmAlgorithms, RanksInDifferentCollectivesAreToldSo) {
  std::string messages[2];
  run(2, [&](Member& member) {
    std::vector<Map> input = maps_of(member.rank, 10, 0), output(10);
    Call call = member.rank == 0 ? barrier() : call_of(Collective::allreduce, input, output);
    if (member.rank == 1) call.reduction = {compose, nullptr, true};
    messages[member.rank] = member.team->run(call).message();
  });
  EXPECT_NE((messages[0] + messages[1]).find("is in"), std::string::npos) << messages[0] << "\n"
                                                                          << messages[1];
  EXPECT_FALSE(messages[0].empty());
  EXPECT_FALSE(messages[1].empty());
}

TEST_F(ShmAlgorithms, DifferentLengthsAreToldSo) {
  std::string messages[2];
  run(2, [&](Member& member) {
    std::vector<Map> input = maps_of(member.rank, 4 + member.rank, 0), output(input.size());
    Call call = call_of(Collective::allreduce, input, output);
    call.reduction = {compose, nullptr, true};
    messages[member.rank] = member.team->run(call).message();
  });
  EXPECT_NE((messages[0] + messages[1]).find("bytes where"), std::string::npos) << messages[0];
}

// The ranks' lengths select different algorithms, whose rounds hold different data.
TEST_F(ShmAlgorithms, VeryDifferentLengthsAreToldSo) {
  std::string messages[2];
  run(2, [&](Member& member) {
    std::vector<Map> data(member.rank == 0 ? 4 : size_t{1} << 20);
    messages[member.rank] =
        member.team->run(call_of(Collective::broadcast, data, data, 1)).message();
  });
  EXPECT_NE(messages[0].find("it sends 8388608 bytes where this rank expects 32"),
            std::string::npos)
      << messages[0];
  EXPECT_FALSE(messages[1].empty());
}

// A rank that thinks that there is nothing to do must not be a round ahead of the others, which
// would wait for it.
TEST_F(ShmAlgorithms, ARankWithoutDataIsToldThatOthersHaveSome) {
  for (const auto collective : {Collective::scatter, Collective::gather}) {
    for (const Rank root : {0U, 1U, 2U}) {
      std::string messages[4];
      run(4, [&](Member& member) {
        member.process.knobs.timeout = 20;
        const size_t count = member.rank == 1 ? 0 : 20000;
        std::vector<Map> own(count), all(4 * count);
        const bool scatters = collective == Collective::scatter;
        Call call = call_of(collective, scatters ? all : own, scatters ? own : all, root);
        call.input.count = call.output.count = count;
        call.bytes = count * sizeof(Map);
        Status status = member.team->run(call);
        if (status.ok()) status = member.team->run(barrier());
        messages[member.rank] = status.message();
      });
      const auto all = messages[0] + messages[1] + messages[2] + messages[3];
      EXPECT_NE(all.find("bytes where"), std::string::npos) << root << all;
      for (const std::string& message : messages) EXPECT_FALSE(message.empty()) << root << all;
    }
  }
}

TEST_F(ShmAlgorithms, ADeadlineEndsTheWaitAndTellsTheOthers) {
  std::string messages[3];
  std::atomic<int> failed{0};
  run(3, [&](Member& member) {
    member.process.knobs.timeout = 0.2;  // for calls: the team exists already
    if (member.rank == 2) {              // calls when the others have given up
      while (failed < 2) std::this_thread::sleep_for(1ms);
      (void)member.team->run(barrier());  // the others had set their flags
    }
    messages[member.rank] = member.team->run(barrier()).message();
    ++failed;
  });
  EXPECT_NE((messages[0] + messages[1]).find("SLUICE_TIMEOUT"), std::string::npos) << messages[0];
  EXPECT_FALSE(messages[2].empty());
}

TEST_F(ShmAlgorithms, ADeadRankIsNoticed) {
  std::string message;
  run(2, [&](Member& member) {
    if (member.rank == 1) return arenas_.kill(1);
    const Stopwatch watch;
    message = member.team->run(barrier()).message();
    EXPECT_TRUE(is_prompt(watch.elapsed(), 1s));
  });
  EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
}

// The waiting rank must check the flag again: the other may set it between the check of the flag
// and the check whether its process is alive.
TEST_F(ShmAlgorithms, WhatARankDidJustBeforeItDiedCounts) {
  std::atomic<bool> waits{false}, may_come{false}, has_come{false};
  arenas_.before_looks([&](uint32_t rank) {
    if (rank != 1 || !waits) return;  // ranks also check during set-up
    may_come = true;
    while (!has_come) std::this_thread::yield();
    arenas_.kill(1);
  });
  run(2, [&](Member& member) {
    if (member.rank == 0) waits = true;
    while (member.rank == 1 && !may_come) std::this_thread::yield();
    const Status status = member.team->run(barrier());
    EXPECT_TRUE(status.ok()) << status.message();
    if (member.rank == 1) has_come = true;
  });
}

TEST_F(ShmAlgorithms, WhatARankLeftBehindIsStillFound) {
  run(2, [&](Member& member) {
    std::vector<Map> data = maps_of(0, 100, member.rank);
    if (member.rank == 1) std::this_thread::sleep_for(300ms);
    const Status status = member.team->run(call_of(Collective::broadcast, data, data));
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data, maps_of(0, 100, 0));
  });
}

TEST_F(ShmAlgorithms, ElementsThatFitNoSlotGoAnotherWay) {
  struct Huge {
    std::array<uint32_t, 10000> words;
  };
  run(2, [&](Member& member) {
    std::vector<Huge> input(2), output(2);
    for (Huge& huge : input) huge.words.fill(member.rank + 1);
    Call call = call_of(Collective::allreduce, input, output);
    call.reduction.kernel = [](const void* left, const void* right, void* out, size_t n,
                               const void*) {
      const auto *l = static_cast<const uint32_t*>(left), *r = static_cast<const uint32_t*>(right);
      for (size_t i = 0; i < n * 10000; ++i) static_cast<uint32_t*>(out)[i] = l[i] + r[i];
    };
    ASSERT_TRUE(member.team->run(call).ok());
    EXPECT_EQ(output[1].words[9999], 3U);
  });
}

}  // namespace
}  // namespace sluice::testing
