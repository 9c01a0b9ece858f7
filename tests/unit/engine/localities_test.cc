// SPDX-License-Identifier: BSD-3-Clause
//
// What follows from where ranks are: whether they crowd each other, and the groups that they form.
#include "src/engine/localities.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using Groups = std::vector<uint32_t>;

// A rank bound to one processor.
Locality at(uint32_t processor, uint64_t cache, uint64_t node) {
  Locality locality;
  locality.processors[processor / 64] = uint64_t{1} << (processor % 64);
  locality.cache = cache;
  locality.node = node;
  return locality;
}

// So many ranks, each with a processor of its own: on processors by caches of so many, these by
// nodes of so many caches.
std::vector<Locality> machine(uint32_t ranks, uint32_t per_cache, uint32_t caches_per_node) {
  std::vector<Locality> localities;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t cache = rank / per_cache;
    localities.push_back(at(rank, 1 + cache * per_cache, 1 + cache / caches_per_node));
  }
  return localities;
}

Locality sharing(std::initializer_list<uint32_t> processors) {
  Locality locality;
  for (const uint32_t each : processors) locality.processors[0] |= uint64_t{1} << each;
  return locality;
}

std::vector<bool> crowded(const std::vector<Locality>& localities) {
  std::vector<bool> found;
  for (uint32_t rank = 0; rank < localities.size(); ++rank) {
    found.push_back(ranks_per_processor(localities, rank) > 1);
  }
  return found;
}

TEST(Crowds, MoreRanksThanTheProcessorsTheyShare) {
  const std::vector<Locality> two(2, sharing({0, 1})), three(3, sharing({0, 1}));
  EXPECT_EQ(crowded(two), (std::vector<bool>{false, false}));
  EXPECT_EQ(crowded(three), (std::vector<bool>{true, true, true}));
}

TEST(Crowds, BindingCounts) {
  EXPECT_EQ(crowded({sharing({0}), sharing({1}), sharing({0})}),
            (std::vector<bool>{true, false, true}));
  // Two ranks that may run on either processor, and one that is bound to the first.
  EXPECT_EQ(crowded({sharing({0, 1}), sharing({0, 1}), sharing({0})}),
            (std::vector<bool>{true, true, false}));
  EXPECT_EQ(crowded({sharing({0, 1}), sharing({2, 3})}), (std::vector<bool>{false, false}));
}

TEST(Crowds, AreCountedByTheProcessor) {
  const std::vector<Locality> seven(7, sharing({0, 1, 2}));
  EXPECT_EQ(most_per_processor(seven), 3U);
  EXPECT_EQ(most_per_processor(std::vector{sharing({0}), sharing({1}), sharing({1})}), 2U);
  EXPECT_EQ(most_per_processor(std::vector{sharing({0}), sharing({1})}), 1U);
  EXPECT_EQ(most_per_processor(std::vector<Locality>(9)), 1U) << "nothing known";
  std::vector<Locality> bounded(4, sharing({0, 1, 2, 3}));
  for (Locality& each : bounded) each.budget = 1500;
  EXPECT_EQ(most_per_processor(bounded), 3U);
}

TEST(Crowds, WhatOtherTeamsToldCounts) {
  std::vector<Locality> two{sharing({0, 1}), sharing({0, 1})};
  two[1].known_per_processor = 4;
  EXPECT_EQ(ranks_per_processor(two, 0), 1U);
  EXPECT_EQ(ranks_per_processor(two, 1), 4U);
  EXPECT_EQ(most_per_processor(two), 4U);
}

TEST(Crowds, WhatIsNotKnownDoesNotCount) {
  EXPECT_EQ(crowded(std::vector<Locality>(9)), std::vector<bool>(9, false));
  EXPECT_EQ(crowded({sharing({0}), Locality(), Locality()}), std::vector<bool>(3, false));
}

TEST(Crowds, ControlGroupsCount) {
  std::vector<Locality> ranks(3, sharing({0, 1, 2, 3}));
  for (Locality& each : ranks) {
    each.budget_holder = 7;
    each.budget = 3000;
  }
  EXPECT_EQ(crowded(ranks), std::vector<bool>(3, false));
  for (Locality& each : ranks) each.budget = 2500;
  EXPECT_EQ(crowded(ranks), std::vector<bool>(3, true));
  ranks[1].budget_holder = 8;  // in another container
  EXPECT_EQ(crowded(ranks), std::vector<bool>(3, false));
  ranks[1].budget = 500;
  EXPECT_EQ(crowded(ranks), (std::vector<bool>{false, true, false}));
}

class Yielding final : public WaitPolicy {
 public:
  bool wait(uint32_t) override {
    std::this_thread::yield();
    return true;
  }
};

TEST(RoundTrip, IsTheSameToBoth) {
  constexpr size_t bytes = Rounds::bytes(2);
  const auto memory = std::make_unique<std::byte[]>(bytes + arena_line);
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  auto* const aligned =
      reinterpret_cast<std::byte*>((address + arena_line - 1) / arena_line * arena_line);
  std::vector<uint32_t> told[2];
  const auto run = [&](uint32_t rank) {
    Rounds rounds(aligned, rank, 2);
    Yielding wait_policy;
    for (int i = 0; i < 5; ++i) {
      told[rank].push_back(0);
      EXPECT_TRUE(measure_round_trip(rounds, wait_policy, &told[rank].back()));
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(told[0], told[1]);
  for (const uint32_t nanoseconds : told[0]) {
    EXPECT_GT(nanoseconds, 0U);
    EXPECT_LT(nanoseconds, 1'000'000'000U);
  }
}

TEST(GroupsOf, NodesOrCachesWhicheverLeavesLessToLookAt) {
  // One cache a node: the same.
  EXPECT_EQ(make_groups("auto", machine(8, 4, 1)), (Groups{0, 0, 0, 0, 1, 1, 1, 1}));
  // Two caches a node, of two ranks each: 4 + 2 is less than 2 + 4 is not; nodes.
  EXPECT_EQ(make_groups("auto", machine(8, 2, 2)), (Groups{0, 0, 0, 0, 1, 1, 1, 1}));
  // Many caches of many ranks on two nodes: caches.
  const Groups many = make_groups("auto", machine(64, 8, 4));
  EXPECT_EQ(many.size(), 64U);
  EXPECT_EQ(many.back(), 7U);
  // A cache for each rank: nodes.
  EXPECT_EQ(make_groups("auto", machine(10, 1, 5)), (Groups{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
  // One node: caches.
  EXPECT_EQ(make_groups("auto", machine(12, 4, 3)), (Groups{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(GroupsOf, AreNumberedByTheirLowestRanks) {
  std::vector<Locality> ranks;
  for (uint32_t rank = 0; rank < 9; ++rank) ranks.push_back(at(rank, 5 - rank % 2, 5 - rank % 2));
  EXPECT_EQ(make_groups("auto", ranks), (Groups{0, 1, 0, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(describe_groups(make_groups("auto", ranks)), "0, 2, 4, 6, 8; 1, 3, 5, 7");
}

TEST(GroupsOf, AreLeftAloneWhereTheyGainNothing) {
  EXPECT_TRUE(make_groups("auto", machine(7, 4, 1)).empty()) << "few ranks";
  EXPECT_TRUE(make_groups("auto", machine(8, 8, 1)).empty()) << "one cache";
  EXPECT_TRUE(make_groups("off", machine(8, 4, 1)).empty());
  EXPECT_TRUE(make_groups("auto", std::vector<Locality>(8)).empty()) << "nothing known";
  std::vector<Locality> ranks = machine(8, 4, 1);
  ranks[5].cache = ranks[5].node = 0;
  EXPECT_TRUE(make_groups("auto", ranks).empty()) << "one rank wanders";
  ranks = machine(8, 4, 1);
  ranks[5].processors = ranks[4].processors;
  EXPECT_TRUE(make_groups("auto", ranks).empty()) << "two take turns";
  ranks = machine(8, 4, 1);
  ranks[5].cache = 0;
  EXPECT_EQ(make_groups("auto", ranks).size(), 8U) << "its node is known";
}

TEST(GroupsOf, AreAsLargeAsIsAskedFor) {
  EXPECT_EQ(make_groups("2", std::vector<Locality>(5)), (Groups{0, 0, 1, 1, 2}));
  EXPECT_TRUE(make_groups("8", std::vector<Locality>(8)).empty()) << "one group is none";
  EXPECT_EQ(describe_groups(make_groups("4", std::vector<Locality>(9))), "0-3; 4-7; 8");
}

}  // namespace
}  // namespace sluice
