// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/slab_vote.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace sluice {
namespace {

using Lack = SlabVote::Lack;
using SlabResult = SlabBallot::Result;
using Outcome = SlabSchedule::Outcome;

SlabVote some_vote(Rank rank) {
  SlabVote vote;
  vote.facts = {17, 1 << 20, 3, 1, 0x1234};
  vote.slab = rank + 5;
  vote.device.fill(static_cast<std::byte>(rank));
  vote.bytes = 1000 * (rank + 1);
  vote.longest = 100 * (5 - rank);
  return vote;
}

std::vector<SlabVote> some_votes(Rank ranks) {
  std::vector<SlabVote> votes;
  for (Rank rank = 0; rank < ranks; ++rank) votes.push_back(some_vote(rank));
  return votes;
}

TEST(SlabVote, survives_packing) {
  SlabVote vote = some_vote(3);
  vote.lack = Lack::kernels;
  std::vector<std::byte> packed(SlabVote::packed_size, std::byte{0xAA});
  vote.pack(packed);
  const SlabVote same = SlabVote::unpack(packed);
  EXPECT_TRUE(same.facts == vote.facts);
  EXPECT_EQ(same.lack, vote.lack);
  EXPECT_EQ(same.slab, vote.slab);
  EXPECT_EQ(same.device, vote.device);
  EXPECT_EQ(same.bytes, vote.bytes);
  EXPECT_EQ(same.longest, vote.longest);
  std::vector<std::byte> again(SlabVote::packed_size, std::byte{0x55});
  same.pack(again);
  EXPECT_EQ(again, packed);
}

TEST(SlabBallot, goes_where_all_are_connected) {
  const auto votes = some_votes(3);
  EXPECT_EQ(count_votes(votes, std::vector<uint64_t>{5, 6, 7}, 0).result, SlabResult::go);
  EXPECT_EQ(count_votes(votes, {}, 0).result, SlabResult::connect);
  EXPECT_EQ(count_votes(votes, std::vector<uint64_t>{5, 6, 8}, 0).result, SlabResult::connect);
}

TEST(SlabBallot, stays_for_the_first_rank_that_lacks_something) {
  for (const Lack lack : {Lack::on_host, Lack::unknown, Lack::module, Lack::context, Lack::kernels,
                          Lack::busy, Lack::failed}) {
    auto votes = some_votes(4);
    votes[2].lack = lack;
    votes[3].lack = Lack::on_host;
    const SlabBallot ballot = count_votes(votes, std::vector<uint64_t>{5, 6, 7, 8}, 0);
    EXPECT_EQ(ballot.result, SlabResult::stay);
    EXPECT_EQ(ballot.lack, lack);
    EXPECT_EQ(ballot.rank, 2U);
    EXPECT_GT(std::strlen(describe(lack)), 10U);
  }
}

TEST(SlabBallot, an_alltoallv_is_as_large_as_on_its_largest_rank) {
  const auto votes = some_votes(3);
  const std::vector<uint64_t> all{5, 6, 7};
  EXPECT_EQ(count_votes(votes, all, 3000).result, SlabResult::go);
  EXPECT_EQ(count_votes(votes, all, 3000).longest, 500U);
  EXPECT_EQ(count_votes(votes, all, 3001).result, SlabResult::stay);
  EXPECT_EQ(count_votes(votes, all, 3001).lack, Lack::small);
}

TEST(SlabBallot, calls_that_differ_are_a_mismatch) {
  void (*const changes[])(CallFacts & facts) = {
      [](CallFacts& facts) { ++facts.signature; }, [](CallFacts& facts) { ++facts.bytes; },
      [](CallFacts& facts) { ++facts.type; }, [](CallFacts& facts) { ++facts.operation; },
      [](CallFacts& facts) { ++facts.blocks; }};
  for (const auto change : changes) {
    auto votes = some_votes(3);
    votes[0].lack = Lack::on_host;
    change(votes[1].facts);
    const SlabBallot ballot = count_votes(votes, {}, 0);
    EXPECT_EQ(ballot.result, SlabResult::mismatch);
    EXPECT_EQ(ballot.rank, 1U);
  }
}

// The numbers of the calls, of so many, that have a vote; all with that result.
std::vector<int> voting(SlabSchedule& schedule, int calls, Outcome outcome) {
  std::vector<int> voted;
  for (int call = 1; call <= calls; ++call) {
    if (!schedule.is_due()) continue;
    voted.push_back(call);
    schedule.learn(outcome);
  }
  return voted;
}

TEST(SlabSchedule, votes_become_rare_on_the_host) {
  SlabSchedule schedule;
  EXPECT_EQ(voting(schedule, 5000, Outcome::refused),
            (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096}));
}

TEST(SlabSchedule, each_call_votes_on_devices) {
  SlabSchedule schedule;
  EXPECT_EQ(voting(schedule, 100, Outcome::went).size(), 100U);
  EXPECT_EQ(voting(schedule, 63, Outcome::refused).size(), 63U);
  EXPECT_EQ(voting(schedule, 10, Outcome::went).size(), 10U);
  EXPECT_EQ(voting(schedule, 64, Outcome::refused).size(), 64U);
  EXPECT_EQ(voting(schedule, 9, Outcome::refused), (std::vector<int>{1, 2, 4, 8}));
}

TEST(SlabSchedule, what_passes_is_tried_again_at_once) {
  SlabSchedule schedule;
  EXPECT_EQ(voting(schedule, 5, Outcome::refused), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(voting(schedule, 5, Outcome::passing), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(voting(schedule, 1, Outcome::went).size(), 1U);
  EXPECT_EQ(voting(schedule, 100, Outcome::passing).size(), 100U);
  EXPECT_EQ(voting(schedule, 5, Outcome::went).size(), 5U);
}

TEST(RankReport, survives_packing) {
  std::vector<std::byte> packed(RankReport::packed_size, std::byte{0xAA});
  RankReport{true, {}}.pack(packed);
  EXPECT_TRUE(RankReport::unpack(packed).is_well);
  RankReport{false, "a copy"}.pack(packed);
  EXPECT_FALSE(RankReport::unpack(packed).is_well);
  EXPECT_EQ(RankReport::unpack(packed).why, "a copy");
  RankReport{false, std::string(500, 'x')}.pack(packed);
  EXPECT_EQ(RankReport::unpack(packed).why, std::string(RankReport::longest_text, 'x'));
}

TEST(SlabOffer, survives_packing) {
  std::vector<std::byte> packed(SlabOffer::packed_size, std::byte{0xAA});
  SlabOffer offer{77, {}, {}};
  for (size_t i = 0; i < offer.handle.size(); ++i) offer.handle[i] = static_cast<char>(i * 3);
  offer.pack(packed);
  EXPECT_EQ(SlabOffer::unpack(packed).slab, 77U);
  EXPECT_EQ(SlabOffer::unpack(packed).handle, offer.handle);
  SlabOffer{0, {}, "no memory"}.pack(packed);
  EXPECT_EQ(SlabOffer::unpack(packed).slab, 0U);
  EXPECT_EQ(SlabOffer::unpack(packed).why, "no memory");
}

}  // namespace
}  // namespace sluice
