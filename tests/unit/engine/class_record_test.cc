// SPDX-License-Identifier: BSD-3-Clause
//
// What one rank keeps of a class of calls.
#include "src/engine/class_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "src/engine/class_counts.h"

namespace sluice {
namespace {

constexpr size_t kept = 64;

// The numbers of the calls that are sampled of so many, as a rank keeps them.
std::vector<uint64_t> sampled_of(uint64_t calls) {
  CallSample sample;
  for (uint64_t call = 1; call <= calls; ++call) {
    if (call == sample.next()) sample.add({.key = call}, kept);
  }
  std::vector<uint64_t> numbers;
  for (const TimedCall& each : sample.calls()) numbers.push_back(each.key);
  return numbers;
}

TEST(CallSample, HasEachOfFewCalls) {
  std::vector<uint64_t> all(kept);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(sampled_of(kept), all);
}

TEST(CallSample, IsSpreadOverAllCallsInNoRhythm) {
  constexpr uint64_t calls = 1'000'000;
  const std::vector<uint64_t> numbers = sampled_of(calls);
  EXPECT_LE(numbers.size(), kept);
  EXPECT_GE(numbers.size(), kept / 4);
  for (uint64_t part = 0; part < 4; ++part) {
    const auto is_there = [&](uint64_t each) { return (each - 1) * 4 / calls == part; };
    EXPECT_GE(std::ranges::count_if(numbers, is_there), 3) << part;
  }
  for (uint64_t rhythm : {2, 3, 4, 8}) {
    const auto is_first = [&](uint64_t each) { return each % rhythm == 0; };
    EXPECT_GT(std::ranges::count_if(numbers, is_first), 0) << rhythm;
    EXPECT_LT(std::ranges::count_if(numbers, is_first), std::ssize(numbers)) << rhythm;
  }
}

uint64_t in_all(const ClassRecord& record) {
  return std::accumulate(record.histogram.begin(), record.histogram.end(), uint64_t{0});
}

TEST(ClassCounter, TellsOfTimedCallsWhatTheyTook) {
  ClassCounter counter;
  for (const float lasted : {1.0F, 1000.0F, 1024.0F, 2e9F})
    counter.add({.lasted = lasted}, 8, kept);
  const ClassRecord record = counter.record(0);
  EXPECT_EQ(record.calls, 4U);
  EXPECT_EQ(record.bytes, 32U);
  EXPECT_EQ(record.nanoseconds, 2'000'002'025U);
  EXPECT_EQ(record.histogram[0], 1U);
  EXPECT_EQ(record.histogram[9], 1U);
  EXPECT_EQ(record.histogram[10], 1U);
  EXPECT_EQ(record.histogram[30], 1U);
  EXPECT_EQ(record.sample.size(), 4U);
}

// Calls take 100 ns, but a few that were not timed a millisecond.
TEST(ClassCounter, TellsOfTheOthersWhatTheSampleAndTheirWaitsSay) {
  ClassCounter counter;
  uint64_t timed = 0;
  for (uint64_t call = 1; call <= 10'000; ++call) {
    if (call == counter.next()) {
      counter.add({.lasted = 100}, 8, kept);
      ++timed;
    } else {
      counter.pass(1, 8);
    }
  }
  for (int i = 0; i < 5; ++i) counter.add_long(1'000'000);
  const ClassRecord record = counter.record(0);
  EXPECT_EQ(record.calls, 10'000U);
  EXPECT_EQ(record.bytes, 80'000U);
  EXPECT_EQ(record.nanoseconds, 9'995U * 100 + 5'000'000);
  EXPECT_EQ(in_all(record), 10'000U);
  EXPECT_EQ(record.histogram[6], 9'995U);
  EXPECT_EQ(record.histogram[19], 5U);
  EXPECT_LT(timed, 1000U);
}

// Two communicators of a name, freed in other orders on two ranks.
TEST(ClassRecord, KeepsTheSameSampleInWhateverOrderOthersAreAdded) {
  std::vector<ClassRecord> parts(3);
  uint64_t key = 0;
  for (ClassRecord& part : parts) {
    for (size_t i = 0; i < kept; ++i) part.sample.push_back({.key = scramble(++key)});
    part.calls = kept;
  }
  ClassRecord one, other;
  for (const size_t i : {0, 1, 2}) one.add(parts[i], kept);
  for (const size_t i : {2, 0, 1}) other.add(parts[i], kept);
  EXPECT_EQ(one.calls, 3 * kept);
  ASSERT_EQ(one.sample.size(), kept);
  for (size_t i = 0; i < kept; ++i) EXPECT_EQ(one.sample[i].key, other.sample[i].key);
}

Oversubscription nobody;

// Which of a row of calls pass without being timed, and the record of them.
struct Counted {
  std::vector<bool> passed;
  std::map<CountedClass, Statistics::Class> classes;
};

Counted count(const std::vector<const Algorithm*>& algorithms, const std::vector<size_t>& bytes,
              size_t calls) {
  Waiter waiter(nullptr, {}, -1, nobody);
  ClassCounts counts(ClassCounts::Kind::blocking, waiter, kept);
  Counted counted;
  for (size_t i = 0; i < calls; ++i) {
    Call call;
    const Algorithm& algorithm = *algorithms[i % algorithms.size()];
    call.collective = algorithm.collective;
    call.bytes = bytes[i % bytes.size()];
    counted.passed.push_back(counts.pass(algorithm, call.bytes));
    if (counted.passed.back()) continue;
    counts.begin();
    counts.add(algorithm, call, call.bytes, ClassCounts::Clock::now());
  }
  Statistics statistics;
  counts.hand_over({"name", 7, {}, 0, 2, "tcp"}, &statistics);
  EXPECT_TRUE(counts.empty());
  counted.classes = statistics.classes();
  return counted;
}

const Algorithm& flat() { return *find_algorithm(Collective::allreduce, "flat"); }
const Algorithm& ring() { return *find_algorithm(Collective::allreduce, "ring"); }

TEST(ClassCounts, OnlyCountMostShortCallsInSharedMemory) {
  const Counted counted = count({&flat()}, {8}, 10'000);
  EXPECT_GT(std::ranges::count(counted.passed, true), 9'000);
  ASSERT_EQ(counted.classes.size(), 1U);
  const auto& [of, told] = *counted.classes.begin();
  EXPECT_EQ(told.record.calls, 10'000U);
  EXPECT_EQ(told.record.bytes, 80'000U);
  EXPECT_EQ(in_all(told.record), 10'000U);
  EXPECT_EQ(of.size, 4);
  EXPECT_EQ(of.carrier, "shm");
  EXPECT_EQ(of.path, "arena");
}

TEST(ClassCounts, TimeLongCallsAndThoseOverLinks) {
  for (const auto& counted : {count({&flat()}, {1 << 20}, 1000), count({&ring()}, {8}, 1000)}) {
    EXPECT_EQ(std::ranges::count(counted.passed, true), 0);
    EXPECT_EQ(counted.classes.begin()->second.record.calls, 1000U);
  }
}

TEST(ClassCounts, TellClassesApart) {
  const Counted counted = count({&flat(), &ring(), &flat()}, {8, 15, 16, 0}, 1200);
  std::vector<std::tuple<std::string, int, uint64_t>> found;
  for (const auto& [of, told] : counted.classes) {
    found.emplace_back(of.algorithm, of.size, told.record.calls);
    EXPECT_EQ(in_all(told.record), told.record.calls);
  }
  EXPECT_EQ(found, (std::vector<std::tuple<std::string, int, uint64_t>>{{"flat", 0, 200},
                                                                        {"flat", 4, 400},
                                                                        {"flat", 5, 200},
                                                                        {"ring", 0, 100},
                                                                        {"ring", 4, 200},
                                                                        {"ring", 5, 100}}));
}

// Ranks count alike, so they sample the same calls.
TEST(ClassCounts, SampleTheSameCallsOnAllRanks) {
  const auto keys_of = [](const Counted& counted) {
    std::vector<uint64_t> keys;
    for (const auto& each : counted.classes.begin()->second.record.sample) keys.push_back(each.key);
    return keys;
  };
  EXPECT_EQ(keys_of(count({&flat()}, {8}, 5000)), keys_of(count({&flat()}, {8}, 5000)));
  EXPECT_NE(keys_of(count({&flat()}, {8}, 5000)), keys_of(count({&flat()}, {16}, 5000)));
}

}  // namespace
}  // namespace sluice
