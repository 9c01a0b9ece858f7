// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/algorithm.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sluice {
namespace {

constexpr Collective last = Collective::barrier;

TEST(Collective, NamesAreParsedBack) {
  for (uint32_t i = 0; i < collective_count; ++i) {
    Collective parsed = last;
    ASSERT_TRUE(parse(to_string(static_cast<Collective>(i)), &parsed));
    EXPECT_EQ(static_cast<uint32_t>(parsed), i);
  }
  Collective parsed = last;
  EXPECT_FALSE(parse("allreduces", &parsed));
  EXPECT_FALSE(parse("", &parsed));
  EXPECT_EQ(to_string(Collective::reduce_scatter), "reduce_scatter");
}

TEST(Registry, ServesEveryCollectiveWithNamesOfItsOwn) {
  size_t sum = 0;
  for (uint32_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    std::set<std::string> names;
    for (const Algorithm& algorithm : algorithms(collective)) {
      EXPECT_EQ(algorithm.collective, collective);
      EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name << " is there twice";
      EXPECT_EQ(find_algorithm(collective, algorithm.name), &algorithm);
      EXPECT_STRNE(algorithm.help, "");
    }
    EXPECT_FALSE(names.empty()) << to_string(collective);
    sum += names.size();
  }
  EXPECT_EQ(sum, algorithms().size());
  EXPECT_EQ(algorithms().data(), algorithms().data());
}

TEST(Registry, KnowsWhatThereIsNot) {
  EXPECT_EQ(find_algorithm(Collective::allreduce, "rings"), nullptr);
  EXPECT_EQ(find_algorithm(Collective::barrier, "ring"), nullptr);
}

// For each possible call there is an algorithm with a plan that can serve it.
TEST(Registry, LeavesNoCallUnserved) {
  for (uint32_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (Rank size = 1; size < 70; ++size) {
      bool served = false;
      for (const Algorithm& algorithm : algorithms(collective)) {
        served |=
            algorithm.plan && can_serve(algorithm, size, true, collective != Collective::alltoall);
      }
      EXPECT_TRUE(served) << to_string(collective) << " of " << size;
    }
  }
}

TEST(Operands, AreOfAllRanksButInScans) {
  EXPECT_EQ(operands_of(Collective::allreduce, 2, 5), 5U);
  EXPECT_EQ(operands_of(Collective::scan, 2, 5), 3U);
  EXPECT_EQ(operands_of(Collective::exscan, 2, 5), 2U);
  EXPECT_EQ(operands_of(Collective::exscan, 0, 5), 0U);
}

TEST(Sizes, AreCommonUnlessOnlyEndsOfABlockKnowThem) {
  EXPECT_TRUE(has_common_size(Collective::allgatherv));
  EXPECT_TRUE(has_common_size(Collective::gather));
  EXPECT_FALSE(has_common_size(Collective::gatherv));
  EXPECT_FALSE(has_common_size(Collective::scatterv));
  EXPECT_FALSE(has_common_size(Collective::alltoallv));
}

TEST(Needs, AreRespected) {
  Algorithm algorithm{Collective::allreduce, "", "", {}, nullptr, nullptr};
  EXPECT_TRUE(can_serve(algorithm, 6, true, true));
  algorithm.needs = {.power_of_two = true};
  EXPECT_TRUE(can_serve(algorithm, 8, true, true));
  EXPECT_TRUE(can_serve(algorithm, 1, true, true));
  EXPECT_FALSE(can_serve(algorithm, 6, true, true));
  algorithm.needs = {.commutative = true};
  EXPECT_TRUE(can_serve(algorithm, 6, false, true));
  EXPECT_FALSE(can_serve(algorithm, 6, true, true));
  algorithm.needs = {.uniform = true};
  EXPECT_TRUE(can_serve(algorithm, 6, true, false));
  EXPECT_FALSE(can_serve(algorithm, 6, true, true));
}

TEST(Alias, IsWhereInPlaceMayBe) {
  EXPECT_TRUE(alias_of(Collective::allreduce, 3).possible);
  EXPECT_EQ(alias_of(Collective::allreduce, 3).block, whole);
  EXPECT_TRUE(alias_of(Collective::allgatherv, 3).possible);
  EXPECT_EQ(alias_of(Collective::allgatherv, 3).block, 3u);
  EXPECT_EQ(alias_of(Collective::exscan, 3).block, whole);
  EXPECT_EQ(alias_of(Collective::gatherv, 3).block, 3u);
  EXPECT_FALSE(alias_of(Collective::scatter, 3).possible);
  EXPECT_FALSE(alias_of(Collective::alltoall, 3).possible);
  EXPECT_FALSE(alias_of(Collective::reduce_scatter, 3).possible);
  EXPECT_FALSE(alias_of(Collective::broadcast, 3).possible);
}

}  // namespace
}  // namespace sluice
