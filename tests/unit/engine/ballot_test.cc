// SPDX-License-Identifier: BSD-3-Clause
//
// What follows from the votes before a call: the table that says which carrier may do it.
#include "src/engine/ballot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace sluice::testing {
namespace {

using Next = Finding::Next;
using Data = Ability::Data;

constexpr Question about_ipc{{true, false}, {}, 0}, about_nccl{{false, true}, {}, 0},
    about_both{{true, true}, {}, 0};

// A vote for both carriers.
Vote voting_for(Rank rank) {
  Vote vote;
  vote.facts = {17, 0x1234, 1 << 20, 3, 1};
  vote.device[3] = static_cast<std::byte>(rank + 1);
  vote.bytes = 1000 * (rank + 1);
  vote.longest = rank == 1 ? 700 : 100 * (5 - rank);
  vote.by(Carrier::ipc) = {rank + 5, Data::on_device, Lack::nothing, 0};
  vote.by(Carrier::nccl) = {4711, Data::on_device, Lack::nothing, 22803};
  return vote;
}

std::vector<Vote> all_for(Rank ranks) {
  std::vector<Vote> votes;
  for (Rank rank = 0; rank < ranks; ++rank) votes.push_back(voting_for(rank));
  return votes;
}

Finding about(Carrier carrier, const std::vector<Vote>& votes) {
  return count_votes(votes, about_both).by(carrier);
}

TEST(Ballot, asks_only_for_carriers_in_question) {
  const auto votes = all_for(3);
  EXPECT_EQ(count_votes(votes, about_ipc).by(Carrier::nccl).next, Next::not_asked);
  EXPECT_EQ(count_votes(votes, about_nccl).by(Carrier::ipc).next, Next::not_asked);
  EXPECT_EQ(about(Carrier::ipc, votes).next, Next::connect);
  EXPECT_EQ(about(Carrier::nccl, votes).next, Next::go);
}

TEST(Ballot, calls_that_differ_are_a_mismatch) {
  void (*const changes[])(CallFacts&) = {
      [](CallFacts& facts) { ++facts.signature; }, [](CallFacts& facts) { ++facts.bytes; },
      [](CallFacts& facts) { ++facts.type; }, [](CallFacts& facts) { ++facts.operation; },
      [](CallFacts& facts) { ++facts.blocks; }};
  for (const auto change : changes) {
    for (Rank rank = 0; rank < 3; ++rank) {
      auto votes = all_for(3);
      votes[1].by(Carrier::nccl).lack = Lack::failed;  // a mismatch goes before all else
      EXPECT_FALSE(count_votes(votes, about_both).is_mismatch);
      change(votes[rank].facts);
      const Ballot ballot = count_votes(votes, about_both);
      EXPECT_TRUE(ballot.is_mismatch);
      EXPECT_EQ(ballot.by(Carrier::nccl).next, Next::not_asked);
    }
  }
}

TEST(Ballot, ipc_goes_where_all_slabs_are_open) {
  const auto votes = all_for(3);
  const auto says = [&](const std::vector<uint64_t>& connected) {
    return count_votes(votes, {{true, false}, connected, 0}).by(Carrier::ipc).next;
  };
  EXPECT_EQ(says({5, 6, 7}), Next::go);
  EXPECT_EQ(says({}), Next::connect);
  EXPECT_EQ(says({5, 6, 8}), Next::connect);
  EXPECT_EQ(says({5, 6}), Next::connect);
}

TEST(Ballot, an_alltoallv_is_as_large_as_on_its_largest_rank) {
  const auto votes = all_for(3);
  const std::vector<uint64_t> all{5, 6, 7};
  const Ballot ballot = count_votes(votes, {{true, false}, all, 3000});
  EXPECT_EQ(ballot.by(Carrier::ipc).next, Next::go);
  EXPECT_EQ(ballot.longest, 700U);
  const Finding small = count_votes(votes, {{true, false}, all, 3001}).by(Carrier::ipc);
  EXPECT_EQ(small.next, Next::stay);
  EXPECT_EQ(small.lack, Lack::small);
}

// Groups are made and lost by each rank for itself.
TEST(Ballot, nccl_goes_only_in_a_group_that_all_ranks_have) {
  for (const uint64_t other : {uint64_t{0}, uint64_t{4712}}) {
    for (Rank rank = 0; rank < 3; ++rank) {
      auto votes = all_for(3);
      votes[rank].by(Carrier::nccl).group = other;
      EXPECT_EQ(about(Carrier::nccl, votes).next, Next::start);
      EXPECT_FALSE(about(Carrier::nccl, votes).shares_group);
    }
  }
  auto votes = all_for(3);
  for (Vote& vote : votes) vote.by(Carrier::nccl).group = 0;
  EXPECT_EQ(about(Carrier::nccl, votes).next, Next::start);
  EXPECT_EQ(about(Carrier::nccl, votes).lack, Lack::not_started);
}

// Ranks that have given NCCL up have done so because of that one.
TEST(Ballot, names_the_rank_that_has_failed) {
  auto votes = all_for(4);
  for (const Rank rank : {0, 1, 3}) votes[rank].by(Carrier::nccl).lack = Lack::given_up;
  EXPECT_EQ(about(Carrier::nccl, votes).next, Next::never);
  EXPECT_EQ(about(Carrier::nccl, votes).lack, Lack::given_up);
  votes[2].by(Carrier::nccl).lack = Lack::failed;
  EXPECT_EQ(about(Carrier::nccl, votes).next, Next::never);
  EXPECT_EQ(about(Carrier::nccl, votes).lack, Lack::failed);
  EXPECT_EQ(about(Carrier::nccl, votes).rank, 2U);
}

TEST(Ballot, nccl_needs_one_version_and_a_device_for_each_rank) {
  auto votes = all_for(3);
  votes[1].by(Carrier::nccl).version = 22804;
  EXPECT_EQ(about(Carrier::nccl, votes).lack, Lack::version);
  EXPECT_EQ(about(Carrier::nccl, votes).rank, 1U);
  votes = all_for(3);
  votes[2].device = votes[0].device;
  EXPECT_EQ(about(Carrier::nccl, votes).next, Next::go) << "NCCL has seen their devices";
  votes[1].by(Carrier::nccl).group = 0;
  EXPECT_EQ(about(Carrier::nccl, votes).lack, Lack::shared_device);
  EXPECT_EQ(about(Carrier::nccl, votes).rank, 2U);
}

// What one rank may say of a carrier.
std::vector<Ability> all_abilities() {
  std::vector<Ability> all;
  for (auto lack = Lack::nothing; lack <= Lack::given_up;
       lack = static_cast<Lack>(static_cast<uint16_t>(lack) + 1)) {
    for (const Data data : {Data::elsewhere, Data::on_device}) {
      for (const uint64_t group : {uint64_t{0}, uint64_t{4711}}) {
        all.push_back({group, data, lack, 22803});
      }
    }
  }
  return all;
}

// Calls `check` with the votes of three ranks, of which each says everything about the carrier.
void walk(Carrier carrier, const std::function<void(const std::vector<Vote>&)>& check) {
  const auto abilities = all_abilities();
  auto votes = all_for(3);
  for (const Ability& first : abilities) {
    for (const Ability& second : abilities) {
      for (const Ability& third : abilities) {
        votes[0].by(carrier) = first;
        votes[1].by(carrier) = second;
        votes[2].by(carrier) = third;
        check(votes);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// The rank to which the lack, which no lower one has, belongs.
void expect_first(const Finding& finding, Carrier carrier, const std::vector<Vote>& votes) {
  for (Rank rank = 0; rank < finding.rank; ++rank) {
    EXPECT_NE(votes[rank].by(carrier).lack, finding.lack);
  }
  EXPECT_EQ(votes[finding.rank].by(carrier).lack, finding.lack);
}

TEST(Ballot, ipc_stays_if_any_rank_lacks_anything) {
  walk(Carrier::ipc, [](const std::vector<Vote>& votes) {
    const auto lacks = [](const Vote& vote) { return vote.by(Carrier::ipc).lack != Lack::nothing; };
    const auto first = std::ranges::find_if(votes, lacks);
    const Finding finding = about(Carrier::ipc, votes);
    EXPECT_EQ(finding.next, first == votes.end() ? Next::connect : Next::stay);
    if (first == votes.end()) return;
    EXPECT_EQ(finding.rank, first - votes.begin());
    EXPECT_EQ(finding.lack, first->by(Carrier::ipc).lack);
  });
}

TEST(Ballot, nccl_goes_if_no_rank_lacks_anything_and_most_data_is_on_devices) {
  walk(Carrier::nccl, [](const std::vector<Vote>& votes) {
    const auto count = [&](auto holds) {
      return std::ranges::count_if(votes,
                                   [&](const Vote& vote) { return holds(vote.by(Carrier::nccl)); });
    };
    const auto on_device = count([](const Ability& one) { return one.data == Data::on_device; });
    const auto able = count([](const Ability& one) { return one.lack == Lack::nothing; });
    const auto late = count([](const Ability& one) { return one.lack == Lack::starting; });
    const auto members = count([](const Ability& one) { return one.group == 4711; });
    const auto ended = count(
        [](const Ability& one) { return one.lack == Lack::failed || one.lack == Lack::given_up; });
    const bool may = ended == 0 && on_device >= 2 && able == 3;
    const Finding finding = about(Carrier::nccl, votes);
    EXPECT_EQ(finding.all_on_device, on_device == 3);
    EXPECT_EQ(finding.shares_group, members == 3);
    EXPECT_EQ(finding.next == Next::never, ended > 0);
    EXPECT_EQ(finding.next == Next::go, may && members == 3);
    EXPECT_EQ(finding.next == Next::start, may && members != 3);
    if (finding.next == Next::never) return expect_first(finding, Carrier::nccl, votes);
    if (may) return;
    EXPECT_EQ(finding.next, Next::stay);
    if (on_device < 2) {
      EXPECT_EQ(finding.lack, Lack::on_host);
      EXPECT_EQ(votes[finding.rank].by(Carrier::nccl).data, Data::elsewhere);
      return;
    }
    EXPECT_EQ(finding.lack == Lack::starting, able + late == 3);
    expect_first(finding, Carrier::nccl, votes);
  });
}

TEST(Ballot, nccl_stays_if_half_of_the_data_is_on_the_host) {
  for (const Rank ranks : {2U, 4U}) {
    auto votes = all_for(ranks);
    for (Rank rank = 1; rank <= ranks / 2; ++rank) {
      votes[rank].by(Carrier::nccl).data = Data::elsewhere;
    }
    const Finding finding = about(Carrier::nccl, votes);
    EXPECT_EQ(finding.next, Next::stay);
    EXPECT_EQ(finding.lack, Lack::on_host);
    EXPECT_EQ(finding.rank, 1U);
  }
}

}  // namespace
}  // namespace sluice::testing
