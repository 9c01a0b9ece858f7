// SPDX-License-Identifier: BSD-3-Clause
//
// The vote before a call that NCCL may carry: what follows from the votes, and when there is one.
#include "src/engine/ballot.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sluice::testing {
namespace {

using Lack = Vote::Lack;
using Action = VoteSchedule::Action;
using Stage = VoteSchedule::Stage;

// A vote for NCCL.
Vote vote_of(Rank rank) {
  Vote vote;
  vote.signature = 0;
  vote.bytes = 1 << 20;
  vote.type = 10;
  vote.on_device = true;
  vote.version = 22803;
  vote.group = 4711;
  vote.device[3] = static_cast<std::byte>(rank + 1);
  return vote;
}

std::vector<Vote> votes_of(Rank ranks) {
  std::vector<Vote> votes;
  for (Rank rank = 0; rank < ranks; ++rank) votes.push_back(vote_of(rank));
  return votes;
}

TEST(Vote, survives_packing) {
  std::mt19937 random(static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed()));
  for (int i = 0; i < 100; ++i) {
    Vote vote;
    vote.signature = static_cast<uint32_t>(random());
    vote.bytes = uint64_t{random()} << 20 | random();
    vote.type = static_cast<uint8_t>(random());
    vote.operation = static_cast<uint8_t>(random());
    vote.on_device = random() % 2 == 0;
    vote.lack = static_cast<Lack>(random() % 8);
    vote.blocks = static_cast<uint32_t>(random());
    vote.group = uint64_t{random()} << 32 | random();
    vote.version = static_cast<uint32_t>(random());
    for (std::byte& byte : vote.device) byte = static_cast<std::byte>(random());
    std::vector<std::byte> packed(Vote::packed_size, std::byte{0xAA});
    vote.pack(packed);
    const Vote same = Vote::unpack(packed);
    EXPECT_TRUE(same.is_about_the_same_call(vote));
    EXPECT_EQ(same.on_device, vote.on_device);
    EXPECT_EQ(same.lack, vote.lack);
    EXPECT_EQ(same.version, vote.version);
    EXPECT_EQ(same.blocks, vote.blocks);
    EXPECT_EQ(same.group, vote.group);
    EXPECT_EQ(same.device, vote.device);
  }
}

TEST(Ballot, goes_if_all_can) {
  const Ballot ballot = count_votes(votes_of(4));
  EXPECT_EQ(ballot.result, Ballot::Result::go);
  EXPECT_TRUE(ballot.all_on_device);
  EXPECT_STREQ(describe(ballot.reason), "");
}

// The data of fewer than half of the ranks may lie elsewhere.
TEST(Ballot, goes_if_most_are_on_devices) {
  std::vector<Vote> votes = votes_of(5);
  votes[1].on_device = votes[4].on_device = false;
  Ballot ballot = count_votes(votes);
  EXPECT_EQ(ballot.result, Ballot::Result::go);
  EXPECT_FALSE(ballot.all_on_device);
  EXPECT_FALSE(ballot.could_start) << "NCCL takes memory";
  votes[2].on_device = false;
  ballot = count_votes(votes);
  EXPECT_EQ(ballot.result, Ballot::Result::stay);
  EXPECT_EQ(ballot.rank, 1U);
  EXPECT_STREQ(describe(ballot.reason), "its data is not on a device");
}

// Groups are made and lost by each rank for itself.
TEST(Ballot, goes_only_in_a_group_that_all_ranks_have) {
  std::vector<Vote> votes = votes_of(3);
  for (const uint64_t other : {uint64_t{0}, uint64_t{4712}}) {
    votes[1].group = other;
    const Ballot ballot = count_votes(votes);
    EXPECT_EQ(ballot.result, Ballot::Result::stay);
    EXPECT_FALSE(ballot.shares_group);
    EXPECT_TRUE(ballot.could_start);
  }
  for (Vote& vote : votes) vote.group = 0;
  EXPECT_EQ(count_votes(votes).result, Ballot::Result::stay);
  EXPECT_FALSE(count_votes(votes).shares_group);
}

// Each rank in turn has each reason against it.
TEST(Ballot, names_the_rank_and_its_reason) {
  struct Case {
    void (*change)(Vote& vote);
    Ballot::Result result;
    const char* reason;
  };
  const Case cases[] = {
      {[](Vote& vote) { vote.lack = Lack::library; }, Ballot::Result::stay, "can't be used"},
      {[](Vote& vote) { vote.lack = Lack::settings; }, Ballot::Result::stay, "SLUICE_TLS"},
      {[](Vote& vote) { vote.lack = Lack::memory; }, Ballot::Result::stay, "no memory"},
      {[](Vote& vote) { vote.lack = Lack::busy; }, Ballot::Result::stay, "another communicator"},
      {[](Vote& vote) { vote.lack = Lack::start; }, Ballot::Result::stay, "being started"},
      {[](Vote& vote) { vote.lack = Lack::failure; }, Ballot::Result::stay, "has failed"},
      {[](Vote& vote) { vote.lack = Lack::given_up; }, Ballot::Result::stay, "given up"},
  };
  for (const Case& one : cases) {
    for (Rank rank = 0; rank < 3; ++rank) {
      std::vector<Vote> votes = votes_of(3);
      one.change(votes[rank]);
      const Ballot ballot = count_votes(votes);
      EXPECT_EQ(ballot.result, one.result) << one.reason;
      EXPECT_EQ(ballot.rank, rank) << one.reason;
      EXPECT_NE(std::string(describe(ballot.reason)).find(one.reason), std::string::npos)
          << describe(ballot.reason);
    }
  }
}

// Ranks that have given NCCL up have done so because of that one.
TEST(Ballot, names_the_rank_that_has_failed) {
  std::vector<Vote> votes = votes_of(4);
  votes[0].lack = votes[1].lack = votes[3].lack = Lack::given_up;
  EXPECT_TRUE(count_votes(votes).has_failed);
  EXPECT_EQ(count_votes(votes).reason, Ballot::Reason::given_up);
  votes[2].lack = Lack::failure;
  EXPECT_TRUE(count_votes(votes).has_failed);
  EXPECT_EQ(count_votes(votes).reason, Ballot::Reason::failure);
  EXPECT_EQ(count_votes(votes).rank, 2U);
}

// However the reasons take turns.
TEST(Announced, says_each_reason_once) {
  std::vector<Vote> memory = votes_of(3), busy = memory, shared = memory, failed = memory;
  memory[1].lack = Lack::memory;
  busy[2].lack = Lack::busy;
  shared[1].device = shared[0].device;
  shared[1].group = 0;
  failed[2].lack = Lack::failure;
  Announced announced;
  for (const bool is_news : {true, false, false}) {
    for (const auto& votes : {memory, busy, shared, failed}) {
      EXPECT_EQ(announced.is_news(count_votes(votes)), is_news);
    }
  }
  memory[0].lack = Lack::memory;
  EXPECT_FALSE(announced.is_news(count_votes(memory))) << "another rank's is the same";
}

TEST(Announced, is_silent_where_nothing_is_amiss) {
  Announced announced;
  std::vector<Vote> votes = votes_of(3);
  EXPECT_FALSE(announced.is_news(count_votes(votes))) << "NCCL carries the call";
  votes[1].lack = Lack::start;
  EXPECT_FALSE(announced.is_news(count_votes(votes))) << "NCCL is being started";
  for (Vote& vote : votes) vote.group = 0;
  votes[1].lack = Lack::nothing;
  EXPECT_FALSE(announced.is_news(count_votes(votes))) << "NCCL could be started";
  votes[1].lack = Lack::library;
  votes[2].on_device = false;
  EXPECT_FALSE(announced.is_news(count_votes(votes))) << "data is on the host";
  votes[1].lack = Lack::failure;
  EXPECT_TRUE(announced.is_news(count_votes(votes))) << "there will be no other vote";
}

TEST(Ballot, sees_calls_that_do_not_match) {
  void (*const changes[])(Vote&) = {
      [](Vote& vote) { vote.signature = 1; }, [](Vote& vote) { vote.bytes -= 4; },
      [](Vote& vote) { vote.type = 11; },     [](Vote& vote) { vote.operation = 2; },
      [](Vote& vote) { vote.blocks = 7; },
  };
  for (const auto change : changes) {
    std::vector<Vote> votes = votes_of(3);
    change(votes[2]);
    votes[1].lack = Lack::failure;  // a mismatch goes before all else
    const Ballot ballot = count_votes(votes);
    EXPECT_EQ(ballot.result, Ballot::Result::mismatch);
    EXPECT_EQ(ballot.rank, 2U);
    EXPECT_FALSE(ballot.has_failed);
  }
}

TEST(Vote, says_how_another_one_differs) {
  const auto difference = [](const auto& change) {
    Vote other = vote_of(1);
    change(other);
    return describe_difference(vote_of(0), other).message();
  };
  EXPECT_NE(difference([](Vote& vote) { vote.signature = 1; }).find("reduce with root 0"),
            std::string::npos);
  EXPECT_NE(difference([](Vote& vote) { vote.bytes -= 4; }).find("1048572 bytes"),
            std::string::npos);
  EXPECT_EQ(difference([](Vote& vote) { vote.type = 3; }), "it reduces another datatype");
  EXPECT_EQ(difference([](Vote& vote) { vote.operation = 3; }), "it reduces by another operation");
  EXPECT_EQ(difference([](Vote& vote) { vote.blocks = 3; }), "it has other sizes of blocks");
}

TEST(Ballot, needs_one_version_and_a_device_for_each_rank) {
  std::vector<Vote> votes = votes_of(3);
  votes[1].version = 22804;
  EXPECT_STREQ(describe(count_votes(votes).reason), "it has another version of NCCL");
  votes = votes_of(3);
  votes[2].device = votes[0].device;
  votes[1].group = 0;  // where all have a group, NCCL has looked at their devices
  EXPECT_STREQ(describe(count_votes(votes).reason),
               "it shares its device with another rank, and NCCL needs one for each");
  EXPECT_EQ(count_votes(votes).rank, 2U);
}

TEST(VoteSchedule, costs_host_programs_a_logarithm) {
  VoteSchedule schedule;
  std::vector<Vote> votes = votes_of(2);
  votes[1].on_device = false;
  std::vector<uint32_t> at;
  for (uint32_t call = 1; call <= 5000; ++call) {
    if (!schedule.is_due()) continue;
    at.push_back(call);
    EXPECT_EQ(schedule.learn(count_votes(votes)), Action::carry_on);
  }
  EXPECT_EQ(at,
            (std::vector<uint32_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096}));
}

// Makes eligible calls up to the next vote, whose result it learns. *calls: how many.
Action next_vote(VoteSchedule& schedule, const Ballot& ballot, uint32_t* calls) {
  *calls = 1;
  while (!schedule.is_due()) ++*calls;
  return schedule.learn(ballot);
}

TEST(VoteSchedule, starts_after_two_votes_and_runs_when_all_are_ready) {
  VoteSchedule schedule;
  const std::vector<Vote> able = votes_of(2);
  std::vector<Vote> without = able, starting = able;
  for (Vote& vote : without) vote.group = 0;
  starting[1].lack = Lack::start;
  uint32_t calls = 0;
  EXPECT_EQ(next_vote(schedule, count_votes(without), &calls), Action::carry_on);
  EXPECT_EQ(next_vote(schedule, count_votes(without), &calls), Action::start);
  EXPECT_EQ(schedule.stage(), Stage::starting);
  (void)next_vote(schedule, count_votes(starting), &calls);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(next_vote(schedule, count_votes(starting), &calls), Action::carry_on);
    EXPECT_EQ(calls, VoteSchedule::gap_at_start);
  }
  EXPECT_EQ(schedule.stage(), Stage::starting);
  EXPECT_EQ(next_vote(schedule, count_votes(able), &calls), Action::run);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(next_vote(schedule, count_votes(able), &calls), Action::run);
    EXPECT_EQ(calls, 1U);
  }
}

TEST(VoteSchedule, goes_back_after_many_refusals_in_a_row) {
  VoteSchedule schedule;
  const std::vector<Vote> able = votes_of(2);
  std::vector<Vote> host = able;
  host[0].on_device = false;
  uint32_t calls = 0;
  for (int i = 0; i < 3; ++i) (void)next_vote(schedule, count_votes(able), &calls);
  ASSERT_EQ(schedule.stage(), Stage::ready);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 1; i < VoteSchedule::most_refusals; ++i) {
      EXPECT_EQ(next_vote(schedule, count_votes(host), &calls), Action::carry_on);
    }
    EXPECT_EQ(schedule.stage(), Stage::ready);
    EXPECT_EQ(next_vote(schedule, count_votes(able), &calls), Action::run);
  }
  for (uint32_t i = 0; i < VoteSchedule::most_refusals; ++i) {
    (void)next_vote(schedule, count_votes(host), &calls);
  }
  EXPECT_EQ(schedule.stage(), Stage::watching);
}

TEST(VoteSchedule, never_votes_again_after_a_failure) {
  VoteSchedule schedule;
  std::vector<Vote> votes = votes_of(2);
  uint32_t calls = 0;
  (void)next_vote(schedule, count_votes(votes), &calls);
  votes[1].lack = Lack::failure;
  EXPECT_EQ(next_vote(schedule, count_votes(votes), &calls), Action::give_up);
  for (int i = 0; i < 5000; ++i) ASSERT_FALSE(schedule.is_due());
}

}  // namespace
}  // namespace sluice::testing
