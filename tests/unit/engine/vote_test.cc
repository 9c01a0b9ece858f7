// SPDX-License-Identifier: BSD-3-Clause
//
// Votes: how calls differ, what is said about lacks, and when a communicator votes.
#include "src/engine/vote.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace sluice::testing {
namespace {

using Outcome = VoteSchedule::Outcome;

TEST(CallFacts, say_how_others_differ) {
  const CallFacts mine{0, 0, 1 << 20, 10, 0};
  const auto difference = [&](const auto& change) {
    CallFacts other = mine;
    change(other);
    return describe_difference(mine, other).message();
  };
  EXPECT_NE(difference([](CallFacts& other) { other.signature = 1; }).find("reduce with root 0"),
            std::string::npos);
  EXPECT_NE(difference([](CallFacts& other) { other.bytes -= 4; }).find("1048572 bytes"),
            std::string::npos);
  EXPECT_EQ(difference([](CallFacts& other) { other.type = 3; }), "it reduces another datatype");
  EXPECT_EQ(difference([](CallFacts& other) { other.operation = 3; }),
            "it reduces by another operation");
  EXPECT_EQ(difference([](CallFacts& other) { other.blocks = 3; }), "it has other sizes of blocks");
}

TEST(Lack, each_is_described) {
  for (const Carrier carrier : {Carrier::ipc, Carrier::nccl}) {
    std::set<std::string> texts;
    uint16_t lack = 0;
    while (*describe(carrier, static_cast<Lack>(++lack)) != 0) {
      EXPECT_TRUE(texts.insert(describe(carrier, static_cast<Lack>(lack))).second);
    }
    EXPECT_EQ(lack, static_cast<uint16_t>(Lack::small) + 1);
    EXPECT_STREQ(describe(carrier, Lack::nothing), "");
  }
}

// The numbers of the calls, of so many, that have a vote; all with that result.
std::vector<int> voting(VoteSchedule& schedule, int calls, Outcome outcome) {
  std::vector<int> voted;
  for (int call = 1; call <= calls; ++call) {
    if (!schedule.is_due()) continue;
    voted.push_back(call);
    schedule.learn(outcome);
  }
  return voted;
}

TEST(VoteSchedule, votes_become_rare_on_the_host) {
  VoteSchedule schedule;
  EXPECT_EQ(voting(schedule, 5000, Outcome::refused),
            (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096}));
}

TEST(VoteSchedule, each_call_votes_on_devices) {
  VoteSchedule schedule;
  EXPECT_EQ(voting(schedule, 100, Outcome::went).size(), 100U);
  EXPECT_EQ(voting(schedule, 63, Outcome::refused).size(), 63U);
  EXPECT_EQ(voting(schedule, 10, Outcome::went).size(), 10U);
  EXPECT_EQ(voting(schedule, 64, Outcome::refused).size(), 64U);
  EXPECT_EQ(voting(schedule, 9, Outcome::refused), (std::vector<int>{1, 2, 4, 8}));
}

TEST(VoteSchedule, what_passes_is_tried_again_at_once) {
  VoteSchedule schedule;
  EXPECT_EQ(voting(schedule, 5, Outcome::refused), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(voting(schedule, 5, Outcome::passing), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(voting(schedule, 1, Outcome::went).size(), 1U);
  EXPECT_EQ(voting(schedule, 100, Outcome::passing).size(), 100U);
  EXPECT_EQ(voting(schedule, 5, Outcome::went).size(), 5U);
}

TEST(VoteSchedule, some_calls_vote_while_a_carrier_starts) {
  VoteSchedule schedule;
  EXPECT_EQ(voting(schedule, 33, Outcome::starting), (std::vector<int>{1, 2, 10, 18, 26}));
  EXPECT_EQ(voting(schedule, 3, Outcome::went), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(voting(schedule, 3, Outcome::starting), (std::vector<int>{1, 2, 3}))
      << "another one does calls meanwhile";
}

// After so many votes alike, for so many calls.
TEST(VoteRecord, is_firm_while_votes_agree) {
  constexpr CarrierSet ipc{true, false}, both{true, true};
  VoteRecord record;
  EXPECT_FALSE(record.is_firm());
  for (const CarrierSet& able : {ipc, both, CarrierSet{}}) {
    for (uint32_t i = 0; i < VoteRecord::enough; ++i) {
      EXPECT_EQ(record.is_firm(), false) << i;
      record.learn(able);
      EXPECT_EQ(record.able(), able);
    }
    for (uint32_t i = 0; i < VoteRecord::most_left_out; ++i) {
      EXPECT_TRUE(record.is_firm()) << i;
      record.leave_out();
    }
    EXPECT_FALSE(record.is_firm());
    record.learn(able);  // one more is enough
    EXPECT_TRUE(record.is_firm());
    record.learn(able == ipc ? both : ipc);
    EXPECT_FALSE(record.is_firm());
    record.learn(CarrierSet{false, true});
  }
}

}  // namespace
}  // namespace sluice::testing
