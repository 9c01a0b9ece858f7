// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of all sizes in one call: short ones go through the slots; longer ones in further rounds
// of these, or over links, for ranks that take turns on one processor; or they are fetched.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/blocks.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

// Short, medium and long blocks, and the limits between them.
constexpr std::array<size_t, 10> sizes{0,      5,        3000,           16 << 10, (16 << 10) + 1,
                                       30'000, 64 << 10, (64 << 10) + 1, 300'000,  1};

uint32_t most_exchanges() { return sweep(40U, 20U, 4U); }

class TakingTurns : public ::testing::Test {
 protected:
  // adjust: sets the ranks' processors; by default all share one. algorithm: if empty, the rules
  // choose.
  void run(Rank ranks, const std::string& algorithm, const Body& body,
           const Adjust& adjust = share_one) {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust locate = [&](Rank rank, Process& process) {
      process.arenas = arenas_.source();
      process.host = 1;
      adjust(rank, process);
      process.knobs.algorithm[static_cast<size_t>(Collective::alltoallv)] = algorithm;
    };
    on_ranks(ranks, endpoints, locate, body);
  }
  static void share_one(Rank, Process& process) {
    process.locate = [](bool) {
      Locality locality;
      locality.processors[0] = 1;
      return locality;
    };
  }
  void exchange_all_sizes(Rank ranks, const std::string& algorithm, uint32_t seed,
                          uint32_t rounds = most_exchanges()) {
    run(ranks, algorithm, [seed, rounds](Member& member) {
      std::mt19937 common(seed);
      for (uint32_t round = 0; round < rounds; ++round) {
        const uint32_t first = common(), step = common();
        const auto size = [&](Rank from, Rank to) {
          return round % 4 == 0 ? sizes[first % sizes.size()]
                                : sizes[(first + from * step + to) % sizes.size()];
        };
        SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed));
        exchange(member, size);
        ASSERT_FALSE(::testing::Test::HasFatalFailure());
      }
    });
  }

  LoopbackHub hub_;
  ArenaHub arenas_;
};

TEST_F(TakingTurns, BlocksOfAllSizesArrive) {
  const auto seed = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());
  for (const char* const algorithm : {"fetch", "mixed"}) {
    SCOPED_TRACE(algorithm);
    for (const Rank ranks : {2U, 3U, 5U}) exchange_all_sizes(ranks, algorithm, seed + ranks);
  }
}

TEST_F(TakingTurns, WhatIsMediumIsNotFetched) {
  run(4, "fetch", [this](Member& member) {
    const uint32_t moves = arenas_.moves();
    exchange(member, [](Rank, Rank) { return size_t{60'000}; });
    EXPECT_EQ(arenas_.moves(), moves);
    exchange(member, [](Rank, Rank) { return size_t{0}; });
    exchange(member,
             [](Rank from, Rank to) { return size_t{from == 0 && to == 3 ? 65'537U : 60'000U}; });
    if (member.rank == 3) {
      EXPECT_GT(arenas_.moves(), moves) << "what is long is";
    }
  });
}

// Rank 2 arrives after others have made CMA gets.
TEST_F(TakingTurns, BlocksAreFetchedAsRanksCome) {
  for (const bool is_hidden : {false, true}) {
    if (is_hidden) arenas_.hide_memory_of(2);
    const uint32_t before = arenas_.moves();
    run(3, "fetch", [&](Member& member) {
      exchange(member, [](Rank, Rank) { return size_t{8}; });  // all have slots then
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (member.rank == 2 && arenas_.moves() == before) {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody fetches before all have come";
        std::this_thread::yield();
      }
      exchange(member, [](Rank, Rank) { return size_t{100'000}; });
    });
  }
}

TEST_F(TakingTurns, WhatIsNotShortGoesByLinks) {
  std::barrier all(4);
  run(4, "mixed", [&](Member& member) {
    exchange(member, [](Rank, Rank) { return size_t{16'384}; });
    EXPECT_EQ(hub_.messages(), 0U) << "through the slots";
    all.arrive_and_wait();
    exchange(member,
             [](Rank from, Rank to) { return size_t{from == 0 && to == 3 ? 16'385U : 16'384U}; });
    exchange(member, [](Rank, Rank) { return size_t{0}; });
  });
  EXPECT_EQ(hub_.messages(), 1U) << "the long one alone";
  EXPECT_EQ(arenas_.moves(), 0U);
}

// One of two has it that their block is short; the other waits for it over links, or sends it so.
TEST_F(TakingTurns, RanksThatDisagreeAboutABlockAreToldSo) {
  struct Disagreement {
    size_t sent, expected;
    bool both;  // each expects so much of the other
  };
  for (const auto& [sent, expected, both] :
       {Disagreement{10, 100'000, false}, Disagreement{100'000, 10, false},
        Disagreement{10, 100'000, true}, Disagreement{100'000, 2'000'000, true}}) {
    std::vector<std::string> messages(4);
    run(4, "mixed", [&](Member& member) {
      ASSERT_TRUE(member.team) << member.formed.message();
      const auto size = [both](size_t of_two) {
        return [both, of_two](Rank from, Rank to) {
          const bool is_theirs = (from == 0 && to == 2) || (both && from == 2 && to == 0);
          return is_theirs ? of_two : 20'000;
        };
      };
      Blocks input = blocks_from(member, size(sent)), output = blocks_for(member, size(expected));
      messages[member.rank] = member.team->run(call_on(input, output)).message();
    });
    for (const auto& [rank, other] : {std::pair(0, "rank 2"), std::pair(2, "rank 0")}) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", sent " + std::to_string(sent));
      EXPECT_NE(messages[rank].find("counts or datatypes differ"), std::string::npos)
          << messages[rank];
      EXPECT_NE(messages[rank].find(other), std::string::npos) << messages[rank];
    }
  }
}

// Each rank has a processor of its own in this team; one rank met others on its processor before.
TEST_F(TakingTurns, WhatOneRankHasLearnedInOtherTeamsCountsForAll) {
  for (const bool meets_others : {false, true}) {
    const uint32_t moves = arenas_.moves();
    run(
        3, "", [](Member& member) { exchange(member, [](Rank, Rank) { return size_t{60'000}; }); },
        [meets_others](Rank rank, Process& process) {
          if (rank == 1 && meets_others) process.oversubscription.learn(2);
          process.locate = [rank](bool) {
            Locality locality;
            locality.processors[0] = uint64_t{1} << rank;
            return locality;
          };
        });
    EXPECT_EQ(arenas_.moves() == moves, meets_others) << "who takes turns does not fetch";
  }
}

TEST_F(TakingTurns, MemoryOutOfReachGoesThroughTheSlots) {
  const auto seed = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());
  arenas_.hide_memory_of(1);
  exchange_all_sizes(3, "fetch", seed);
}

}  // namespace
}  // namespace sluice::testing
