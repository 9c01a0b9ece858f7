// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice {
namespace {

using Times = std::map<std::string, double>;

TuningPoint point(size_t bytes, Times times, Rank ranks = 2,
                  Collective collective = Collective::allreduce) {
  return {collective, ranks, bytes, "shm", 1, "flat", std::move(times)};
}

// The rules made from some points, each as "bytes algorithm".
std::vector<std::string> rules_of(std::vector<TuningPoint> points, double margin = 0.05) {
  const TuningLog log{"a test", std::move(points)};
  const Tuning tuning = make_tuning(log, margin);
  std::vector<std::string> lines;
  for (const TunedRule& tuned : tuning.rules) {
    const Rule& rule = tuned.rule;
    const bool open = rule.bytes.high == ~size_t{0};
    lines.push_back(std::to_string(rule.bytes.low) + "-" +
                    (open ? "" : std::to_string(rule.bytes.high)) + " " + rule.algorithm);
  }
  EXPECT_TRUE(parse_rules(to_text(log, tuning, "# a test\n")).ok());
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Tuning, NeighboursWithOneWinnerMakeOneRule) {
  EXPECT_EQ(rules_of({point(4, {{"flat", 1}, {"mpi", 2}}), point(8, {{"flat", 1}, {"mpi", 2}}),
                      point(16, {{"flat", 3}, {"mpi", 2}}), point(64, {{"flat", 5}, {"mpi", 2}})}),
            (Lines{"0-8 flat", "9-64 mpi"}));
}

TEST(Tuning, AChallengerMustBeatTheIncumbentByTheMargin) {
  EXPECT_EQ(rules_of({point(4, {{"flat", 1.04}, {"mpi", 1}})}), (Lines{"0-4 flat"}));
  EXPECT_EQ(rules_of({point(4, {{"flat", 1.06}, {"mpi", 1}})}), (Lines{"0-4 mpi"}));
  EXPECT_EQ(rules_of({point(4, {{"flat", 1.06}, {"mpi", 1}})}, 0.1), (Lines{"0-4 flat"}));
}

TEST(Tuning, AWinByLittleBetweenNeighboursIsNone) {
  const Times split_wins{{"flat", 2}, {"split", 1}, {"mpi", 3}};
  EXPECT_EQ(rules_of({point(4, split_wins), point(8, {{"flat", 1}, {"split", 1.04}, {"mpi", 3}}),
                      point(16, split_wins)}),
            (Lines{"0-16 split"}));
  EXPECT_EQ(rules_of({point(4, split_wins), point(8, {{"flat", 1}, {"split", 1.2}, {"mpi", 3}}),
                      point(16, split_wins)}),
            (Lines{"0-4 split", "5-8 flat", "9-16 split"}));
}

TEST(Tuning, WhatIsAboveTheLargestSizeIsOpenFromAMegabyteOn) {
  EXPECT_EQ(rules_of({point(4, {{"flat", 1}}), point(size_t{1} << 20, {{"flat", 1}})}),
            (Lines{"0- flat"}));
}

TEST(Tuning, CandidatesThatCanNotServeEverywhere) {
  EXPECT_EQ(rules_of({point(4, {{"flat", 1}, {"ring", 0.5}}), point(8, {{"flat", 1}})}),
            (Lines{"0-4 ring", "5-8 flat"}));
}

TEST(Tuning, RanksBetweenGoWithTheNearest) {
  const TuningLog log{
      "a test",
      {point(4, {{"flat", 1}}, 2), point(4, {{"flat", 1}}, 3), point(4, {{"flat", 1}}, 8)}};
  const Tuning tuning = make_tuning(log, 0.05);
  ASSERT_EQ(tuning.rules.size(), 3);
  EXPECT_EQ(tuning.rules[0].rule.ranks.low, 2);
  EXPECT_EQ(tuning.rules[0].rule.ranks.high, 2);
  EXPECT_EQ(tuning.rules[1].rule.ranks.low, 3);
  EXPECT_EQ(tuning.rules[1].rule.ranks.high, 5);
  EXPECT_EQ(tuning.rules[2].rule.ranks.low, 6);
  EXPECT_EQ(tuning.rules[2].rule.ranks.high, 8);
}

TEST(Tuning, AlltoallvHasOneRuleForAllSizes) {
  const auto all = Collective::alltoallv;
  EXPECT_EQ(rules_of({point(64, {{"flat", 1}, {"fetch", 1.3}}, 2, all),
                      point(4096, {{"flat", 4}, {"fetch", 1}}, 2, all)}),
            (Lines{"0- fetch"}));
}

TEST(Tuning, CountsWhatMpiKeeps) {
  const TuningLog log{"a test",
                      {point(4, {{"flat", 1}, {"mpi", 2}}), point(8, {{"flat", 2}, {"mpi", 1}})}};
  const Tuning tuning = make_tuning(log, 0.05);
  EXPECT_EQ(tuning.mpi_wins, 1);
  EXPECT_EQ(tuning.winners, (Lines{"flat", "mpi"}));
  EXPECT_DOUBLE_EQ(tuning.rules[1].gain, 2);
}

TEST(Tuning, NoWinnerLosesMoreThanTheMargin) {
  const auto seed = std::random_device()();
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> time(1, 1.3);
  for (int run = 0; run < 200; ++run) {
    TuningLog log;
    for (size_t bytes = 4; bytes < 4096; bytes *= 2) {
      Times times;
      for (const char* name : {"flat", "split", "fetch", "ring", "mpi"}) times[name] = time(random);
      log.points.push_back(point(bytes, times));
    }
    const Tuning tuning = make_tuning(log, 0.05);
    for (size_t i = 0; i < log.points.size(); ++i) {
      const Times& times = log.points[i].times;
      const double best =
          std::ranges::min_element(times, {}, [](const auto& t) { return t.second; })->second;
      EXPECT_LE(times.at(tuning.winners[i]), best * 1.05 + 1e-9);
    }
  }
}

TEST(Tuning, ReadsItsLog) {
  const auto log = parse_tuning_log(
      "job 4 ranks\npoint reduce 3 1024 tcp hosts=2 incumbent=chain chain=2.5 mpi=1 end\n"
      "point reduce 3 2048 tcp incumbent=chain chain=2.5 mp");
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_EQ((*log).job, "4 ranks");
  ASSERT_EQ((*log).points.size(), 1);
  const TuningPoint& read = (*log).points[0];
  EXPECT_EQ(read.collective, Collective::reduce);
  EXPECT_EQ(read.ranks, 3);
  EXPECT_EQ(read.bytes, 1024);
  EXPECT_EQ(read.transport, "tcp");
  EXPECT_EQ(read.hosts, 2);
  EXPECT_EQ(read.incumbent, "chain");
  EXPECT_NE(to_text(*log, make_tuning(*log, 0.05), "").find("ranks:3-3 hosts:2- bytes:0-1k"),
            std::string::npos);
  EXPECT_EQ(read.times, (Times{{"chain", 2.5}, {"mpi", 1}}));
}

TEST(Tuning, AnAlgorithmMayBeCalledHosts) {
  const auto log = parse_tuning_log(
      "job 4 ranks\npoint alltoall 8 128 tcp hosts=4 incumbent=hosts hosts=262.9 mpi=506.5 end\n");
  ASSERT_TRUE(log.ok()) << log.status().message();
  const TuningPoint& read = (*log).points.at(0);
  EXPECT_EQ(read.hosts, 4);
  EXPECT_EQ(read.times, (Times{{"hosts", 262.9}, {"mpi", 506.5}}));
}

TEST(Tuning, NamesTheLineThatIsNoPoint) {
  for (const char* line :
       {"point fly 3 1024 tcp incumbent=a a=1 end", "point reduce x 1024 tcp incumbent=a a=1 end",
        "point reduce 3 1024 tcp incumbent=b a=1 end",
        "point reduce 3 1024 tcp hosts=2.5 incumbent=a a=1 end",
        "point reduce 3 1024 tcp incumbent=a a=0 end", "point reduce 3 1024 tcp incumbent=a a=1"}) {
    const auto log = parse_tuning_log(std::string("job 4 ranks\n") + line + "\n");
    ASSERT_FALSE(log.ok()) << line;
    EXPECT_NE(log.status().message().find("line 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
