// SPDX-License-Identifier: BSD-3-Clause
//
// What the counts of all ranks say of a job, and the files that tell it.
#include "src/engine/job_statistics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/engine/statistics_file.h"

namespace sluice {
namespace {

constexpr uint64_t host = 17;

// What ranks tell of one class: entered[i] and lasted[i] of each call, in microseconds.
struct Seen {
  std::vector<int64_t> entered;
  std::vector<float> lasted;
};

RankStatistics::Class class_of(Collective collective, Rank rank, Rank ranks, const Seen& seen,
                               Rank root) {
  RankStatistics::Class made;
  made.of = {.communicator = "world",
             .group = 5,
             .collective = collective,
             .algorithm = "flat",
             .carrier = "shm",
             .path = "arena",
             .size = 4,
             .nonblocking = false};
  made.counted = {rank, ranks, {}};
  ClassRecord& record = made.counted.record;
  for (size_t i = 0; i < seen.entered.size(); ++i) {
    const float lasted = seen.lasted[i] * 1000;
    record.sample.push_back({scramble(i), seen.entered[i] * 1000, lasted, root});
    record.nanoseconds += static_cast<uint64_t>(lasted);
    ++record.histogram[ClassRecord::octave(static_cast<uint64_t>(lasted))];
  }
  record.calls = seen.entered.size();
  record.bytes = 8 * record.calls;
  return made;
}

std::vector<RankStatistics> told_of(Collective collective, const std::vector<Seen>& ranks,
                                    Rank root = 0) {
  std::vector<RankStatistics> told;
  for (const Seen& seen : ranks) {
    RankStatistics rank;
    rank.rank = static_cast<Rank>(told.size());
    rank.process = "pid " + std::to_string(100 + rank.rank) + " on host a";
    rank.host = host;
    rank.ended = 1'000'000'000;
    rank.classes.push_back(
        class_of(collective, rank.rank, static_cast<Rank>(ranks.size()), seen, root));
    told.push_back(rank);
  }
  return told;
}

JobClass only_class(const std::vector<RankStatistics>& told) {
  const JobStatistics job = put_together(static_cast<uint32_t>(told.size()), told);
  EXPECT_EQ(job.classes.size(), 1U);
  return job.classes.at(0);
}

void expect_late(const JobClass& of, size_t place, Rank rank, double calls, double seconds) {
  ASSERT_GT(of.late.size(), place);
  EXPECT_EQ(of.late[place].rank, rank);
  EXPECT_DOUBLE_EQ(of.late[place].calls, calls);
  EXPECT_NEAR(of.late[place].seconds, seconds, 1e-9);
}

TEST(JobStatistics, SayWhoIsLate) {
  // Rank 2 comes 2 ms after the others, and each call takes 1 us from then on.
  const JobClass of =
      only_class(told_of(Collective::allreduce, {{{0, 5000, 9000}, {2001, 2001, 2001}},
                                                 {{0, 5000, 9000}, {2001, 2001, 2001}},
                                                 {{2000, 7000, 11000}, {1, 1, 1}}}));
  EXPECT_EQ(of.sampled, 3U);
  EXPECT_EQ(of.calls, 3U);
  EXPECT_EQ(of.bytes, 72U);
  EXPECT_NEAR(*of.seconds.waiting, 2 * 3 * 2000e-6, 1e-8);
  EXPECT_NEAR(*of.seconds.moving, 9e-6, 1e-8);
  EXPECT_NEAR(*of.seconds.rest, 0, 1e-8);
  EXPECT_EQ(of.late.size(), 1U);
  expect_late(of, 0, 2, 3, 2 * 3 * 2000e-6);
  EXPECT_NEAR(of.shares[0].low, 1e-6, 1e-9);
}

TEST(JobStatistics, OfABroadcastOnlyTheRootCanBeLate) {
  // The root leaves at once, rank 2 comes long after it.
  const JobClass of = only_class(
      told_of(Collective::broadcast,
              {{{0, 9000}, {502, 502}}, {{500, 9500}, {1, 1}}, {{4000, 13000}, {2, 2}}}, 1));
  EXPECT_EQ(of.late.size(), 1U);
  expect_late(of, 0, 1, 2, 1000e-6);
  EXPECT_NEAR(*of.seconds.moving, 10e-6, 1e-8);
}

TEST(JobStatistics, OfAScanOnlyLowerRanksCanBeLate) {
  const JobClass of = only_class(
      told_of(Collective::scan, {{{0}, {1}}, {{700}, {1}}, {{100}, {601}}, {{5000}, {1}}}));
  EXPECT_EQ(of.late.size(), 1U);
  expect_late(of, 0, 1, 1, 600e-6);
}

TEST(JobStatistics, CallALowPercentileWhatMovesData) {
  // One call is short by luck, three are long by bad luck; the others take 10 us.
  Seen seen;
  for (int i = 0; i < 20; ++i) {
    seen.entered.push_back(1000 * i);
    seen.lasted.push_back(i == 3 ? 1 : i % 7 == 6 ? 110 : 10);
  }
  const JobClass of = only_class(told_of(Collective::allgather, {seen, seen}));
  EXPECT_NEAR(of.shares[0].low, 10e-6, 1e-9);
  EXPECT_NEAR(*of.seconds.waiting, 0, 1e-9);
  EXPECT_NEAR(*of.seconds.moving, 2 * 191e-6, 1e-9);
  EXPECT_NEAR(*of.seconds.rest, 2 * 200e-6, 1e-9);
  EXPECT_TRUE(of.late.empty());
  // Of two calls nothing is said to be too long.
  const JobClass few = only_class(told_of(Collective::allgather, {{{0, 500}, {10, 90}}}));
  EXPECT_NEAR(*few.seconds.rest, 0, 1e-9);
}

TEST(JobStatistics, ScaleASampleToAllCalls) {
  auto told = told_of(Collective::barrier, {{{0, 900}, {300, 300}}, {{100, 1000}, {200, 200}}});
  for (RankStatistics& rank : told) {
    ClassRecord& record = rank.classes[0].counted.record;
    record.calls *= 100;
    record.nanoseconds *= 100;
  }
  const JobClass of = only_class(told);
  EXPECT_EQ(of.calls, 200U);
  EXPECT_NEAR(of.seconds.total, 0.1, 1e-9);
  EXPECT_NEAR(*of.seconds.waiting, 0.02, 1e-9);
  expect_late(of, 0, 1, 200, 0.02);
}

TEST(JobStatistics, DoNotGuessWhereARankIsMissing) {
  auto told = told_of(Collective::allreduce, {{{0}, {100}}, {{50}, {50}}, {{90}, {10}}});
  told.pop_back();
  const JobClass of = only_class(told);
  EXPECT_EQ(of.sampled, 0U);
  EXPECT_EQ(of.ranks, 3U);
  EXPECT_FALSE(of.seconds.waiting);
  EXPECT_NEAR(of.seconds.total, 150e-6, 1e-9);
}

TEST(JobStatistics, BringRanksOfSeveralHostsToOneClock) {
  // Rank 1's clock is 40 ms ahead, and it comes 300 us late.
  auto told = told_of(Collective::allreduce, {{{0, 9000}, {302, 302}}, {{40300, 49300}, {2, 2}}});
  told[1].host = host + 1;
  for (int64_t i = 0; i < 4; ++i) {
    told[0].exchanges.push_back({i * 100'000, i * 100'000 + 4'000});
    told[1].exchanges.push_back({i * 100'000 + 40'000'000, i * 100'000 + 40'004'000});
  }
  const JobStatistics job = put_together(2, told);
  EXPECT_GT(job.clock_error, 0);
  EXPECT_LT(job.clock_error, 10e-6);
  EXPECT_GT(job.clock_drift, 0);
  ASSERT_EQ(job.classes.at(0).late.size(), 1U);
  EXPECT_EQ(job.classes[0].late[0].rank, 1U);
  EXPECT_NEAR(job.classes[0].late[0].seconds, 600e-6, 20e-6);
  const JobStatistics at_one = put_together(1, std::span(told).first(1));
  EXPECT_EQ(at_one.clock_error, 0);
}

TEST(JobStatistics, NumberGroupsByTheirLowestRank) {
  auto told = told_of(Collective::allreduce, {{{0}, {1}}, {{0}, {1}}, {{0}, {1}}});
  told[2].classes[0].of.group = 1;
  const JobStatistics job = put_together(3, told);
  ASSERT_EQ(job.classes.size(), 2U);
  for (const JobClass& each : job.classes) {
    EXPECT_EQ(each.of.group, each.shares[0].rank == 2 ? 1U : 0U);
  }
}

TEST(RankStatistics, ArriveWhole) {
  auto told = told_of(Collective::allreduce, {{{0, 9000}, {302, 302}}, {{300, 9300}, {2, 2}}});
  told[0].exchanges = {{1, 2}, {3, 4}};
  told[0].left = 9;
  told[0].why_ended = "a reason";
  const std::string packed = told[0].pack();
  RankStatistics arrived;
  ASSERT_TRUE(RankStatistics::unpack(packed, &arrived));
  EXPECT_EQ(arrived.pack(), packed);
  EXPECT_EQ(arrived.left, 9U);
  EXPECT_EQ(arrived.why_ended, "a reason");
  EXPECT_EQ(arrived.classes.at(0).of, told[0].classes[0].of);
  EXPECT_EQ(arrived.classes[0].counted.record.sample.size(), 2U);
  for (size_t length = 0; length < packed.size(); ++length) {
    RankStatistics cut;
    EXPECT_FALSE(RankStatistics::unpack(std::string_view(packed).substr(0, length), &cut))
        << length;
  }
}

TEST(StatisticsFile, IsJson) {
  auto told = told_of(Collective::allreduce, {{{0}, {2001}}, {{2000}, {1}}});
  for (RankStatistics& rank : told) {
    rank.classes[0].of.communicator = "a \"b\" \\ \n \xff \xc3\xa4 \xed\xa0\x80";
  }
  told[1].why_ended = "why";
  const std::string text = to_json(put_together(2, told), "1.2");
  EXPECT_EQ(
      text,
      "{\"schema\": 1, \"sluice\": \"1.2\", \"ranks_of_job\": 2, \"clock\": {\"error\": 0, "
      "\"drift\": 0},\n\"ranks\": [\n"
      "{\"rank\": 0, \"process\": \"pid 100 on host a\", \"seconds\": 1, \"left_to_mpi\": 0, "
      "\"ended_by\": null},\n"
      "{\"rank\": 1, \"process\": \"pid 101 on host a\", \"seconds\": 1, \"left_to_mpi\": 0, "
      "\"ended_by\": \"why\"}],\n\"classes\": [\n"
      "{\"communicator\": \"a \\\"b\\\" \\\\ ? ? \xc3\xa4 ???\", \"group\": 0, \"size\": 2, "
      "\"collective\": \"allreduce\", \"nonblocking\": false, \"least_bytes\": 8, "
      "\"most_bytes\": 15, \"algorithm\": \"flat\", \"carrier\": \"shm\", \"path\": \"arena\",\n"
      "\"calls\": 1, \"bytes\": 16, \"sampled\": 1, \"seconds\": {\"total\": 0.002002, "
      "\"waiting\": 0.002, \"moving\": 2e-06, \"rest\": 0},\n"
      "\"histogram\": [{\"from\": 5.12e-07, \"to\": 1.024e-06, \"calls\": 1}, {\"from\": "
      "0.001048576, \"to\": 0.002097152, \"calls\": 1}],\n"
      "\"late\": [{\"rank\": 1, \"calls\": 1, \"seconds\": 0.002}],\n"
      "\"ranks\": [{\"rank\": 0, \"calls\": 1, \"bytes\": 8, \"seconds\": {\"total\": 0.002001, "
      "\"waiting\": 0.002, \"moving\": 1e-06, \"rest\": 0}, \"low\": 1e-06},\n"
      "{\"rank\": 1, \"calls\": 1, \"bytes\": 8, \"seconds\": {\"total\": 1e-06, \"waiting\": 0, "
      "\"moving\": 1e-06, \"rest\": 0}, \"low\": 1e-06}]}]}\n");
}

TEST(StatisticsFile, TellsSizes) {
  auto told = told_of(Collective::alltoallv, {{{0}, {1}}});
  const auto text_of = [&](uint8_t size) {
    told[0].classes[0].of.size = size;
    return to_json(put_together(1, told), "");
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(text_of(0), "\"least_bytes\": 0, \"most_bytes\": 0,"));
  EXPECT_TRUE(has(text_of(1), "\"least_bytes\": 1, \"most_bytes\": 1,"));
  EXPECT_TRUE(has(text_of(21), "\"least_bytes\": 1048576, \"most_bytes\": 2097151,"));
  EXPECT_TRUE(has(text_of(CountedClass::varied), "\"least_bytes\": null, \"most_bytes\": null,"));
}

TEST(StatisticsFile, HasAPlaceForEachRank) {
  EXPECT_EQ(StatisticsFile("json:/a/b").path(), "/a/b");
  EXPECT_EQ(StatisticsFile("json:/a/b").path_of_rank(3), "/a/b.rank3");
  EXPECT_EQ(StatisticsFile("json:a:b.prom").path_of_rank(3), "a:b.prom.rank3");
  EXPECT_EQ(StatisticsFile("prometheus:/a/b.prom").path_of_rank(3), "/a/b.rank3.prom");
  EXPECT_EQ(StatisticsFile("prometheus:/a/b").path_of_rank(3), "/a/b.rank3");
}

}  // namespace
}  // namespace sluice
