// SPDX-License-Identifier: BSD-3-Clause
//
// The team cache: teams that outlive their communicators and serve others.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "src/engine/new_team.h"
#include "src/engine/team_cache.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

// Counts the exchanges of another Bootstrap.
class Counted final : public Bootstrap {
 public:
  explicit Counted(Bootstrap& inner, uint64_t group_fingerprint = 1)
      : inner_(inner), group_fingerprint_(group_fingerprint) {}
  Rank rank() const override { return inner_.rank(); }
  Rank size() const override { return inner_.size(); }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++exchanges;
    return inner_.allgather(mine, all);
  }
  uint64_t group_fingerprint() const override { return group_fingerprint_; }

  int exchanges = 0;

 private:
  Bootstrap& inner_;
  const uint64_t group_fingerprint_;
};

Status meet(Team& team) {
  Call barrier;
  barrier.collective = Collective::barrier;
  return team.run(barrier);
}

void on_three(const Body& body, const Adjust& adjust = {}) {
  LoopbackHub hub;
  on_ranks(
      3, [&hub](Rank, const ProcessId& id) { return hub.endpoint(id); }, adjust, body);
}

Result<std::unique_ptr<Team>> form(Member& member, Bootstrap& bootstrap, Hints hints = {}) {
  return Team::form(member.process, bootstrap, "another", &hints);
}

TEST(Keeping, ATeamThatAllKeptServesAgainAfterOneExchange) {
  on_three([](Member& member) {
    Counted bootstrap(member.bootstrap, 2);
    auto first = form(member, bootstrap);
    ASSERT_TRUE(first.ok());
    const int for_a_new_one = bootstrap.exchanges;
    Team* const team = first->get();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(meet(**first).ok());
      Team::retire(member.process, std::move(*first));
      first = form(member, bootstrap);
      ASSERT_TRUE(first.ok());
      EXPECT_EQ(first->get(), team);
    }
    EXPECT_GT(for_a_new_one, 1);
    EXPECT_EQ(bootstrap.exchanges, for_a_new_one + 5);
    EXPECT_TRUE(meet(**first).ok());
  });
}

TEST(Keeping, TwoAtATime) {
  on_three([](Member& member) {
    for (int i = 0; i < 3; ++i) {
      auto one = form(member, member.bootstrap), two = form(member, member.bootstrap);
      ASSERT_TRUE(one.ok() && two.ok());
      EXPECT_NE(one->get(), two->get());
      EXPECT_TRUE(meet(**one).ok() && meet(**two).ok());
      // Threads of other ranks may free the communicators in another order.
      auto* const first = member.rank == 1 ? &*one : &*two;
      auto* const second = member.rank == 1 ? &*two : &*one;
      Team::retire(member.process, std::move(*first));
      Team::retire(member.process, std::move(*second));
    }
    Counted bootstrap(member.bootstrap);
    EXPECT_TRUE(form(member, bootstrap).ok());
    EXPECT_EQ(bootstrap.exchanges, 1);
  });
}

TEST(Keeping, ATeamThatSomeKeptIsGivenUpByAll) {
  on_three([](Member& member) {
    Counted bootstrap(member.bootstrap, 2);
    auto team = form(member, bootstrap);
    ASSERT_TRUE(team.ok());
    const int for_a_new_one = bootstrap.exchanges;
    Team::retire(member.process, std::move(*team));
    if (member.rank == 1) member.process.team_cache.clear();
    team = form(member, bootstrap);
    ASSERT_TRUE(team.ok());
    EXPECT_EQ(bootstrap.exchanges, 2 * for_a_new_one);
    EXPECT_TRUE(meet(**team).ok());
    EXPECT_FALSE(member.process.team_cache.remove(2, member.rank, member.size));
  });
}

// The group fingerprints of the communicators are equal, but the ranks cached different teams.
TEST(Keeping, WhatLooksAlikeIsNotTakenForTheSame) {
  on_three([](Member& member) {
    auto one = form(member, member.bootstrap), two = form(member, member.bootstrap);
    ASSERT_TRUE(one.ok() && two.ok());
    Team::retire(member.process, std::move(member.rank == 0 ? *one : *two));
    auto three = form(member, member.bootstrap);
    ASSERT_TRUE(three.ok());
    EXPECT_TRUE(meet(**three).ok());
  });
}

TEST(Keeping, BrokenTeamsAndThoseWithHintsAreNotKept) {
  on_three([](Member& member) {
    auto hinted = form(member, member.bootstrap, {{"sluice_bcast", "chain"}});
    auto broken = form(member, member.bootstrap);
    ASSERT_TRUE(hinted.ok() && broken.ok());
    EXPECT_FALSE((*broken)->fail_call({Code::memory, "a test"}).ok());
    Team::retire(member.process, std::move(*hinted));
    Team::retire(member.process, std::move(*broken));
    EXPECT_FALSE(member.process.team_cache.remove(1, member.rank, member.size));
  });
}

TEST(Keeping, HintsAreForANewTeam) {
  on_three([](Member& member) {
    auto team = form(member, member.bootstrap);
    ASSERT_TRUE(team.ok());
    Team::retire(member.process, std::move(*team));
    team = form(member, member.bootstrap,
                member.rank == 2 ? Hints{{"sluice_barrier", "mpi"}} : Hints{});
    ASSERT_TRUE(team.ok());
    EXPECT_TRUE(meet(**team).ok());
    Team::retire(member.process, std::move(*team));
    team = form(member, member.bootstrap, {{"sluice_barrier", "mpi"}});
    ASSERT_TRUE(team.ok());
    Call barrier;
    barrier.collective = Collective::barrier;
    EXPECT_FALSE((*team)->carries(barrier));
  });
}

// The others learn of it from its hello, and no rank continues with the cached team.
TEST(Keeping, ARankWhoseEarlierCallFailedIsHeardBeforeAKeptTeamServes) {
  on_three([](Member& member) {
    auto team = form(member, member.bootstrap);
    ASSERT_TRUE(team.ok());
    EXPECT_TRUE(meet(**team).ok());
    Team::retire(member.process, std::move(*team));
    if (member.rank == 1) {
      EXPECT_TRUE(Team::report_failed_rank(member.process, member.bootstrap));
      return;
    }
    team = form(member, member.bootstrap);
    EXPECT_EQ(team.status().code(), Code::aborted);
    EXPECT_NE(team.status().message().find("rank 1 saw an earlier call on it fail"),
              std::string::npos)
        << team.status().message();
  });
}

// With hints more exchanges are needed, because hints are compared.
TEST(Knowing, RanksThatHaveBeenInATeamFormOthersInOneExchange) {
  for (const bool shares : {false, true}) {
    ArenaHub arenas;
    const auto adjust = [&](Rank, Process& process) {
      process.host = 1;
      if (shares) process.arenas = arenas.source();
    };
    on_three(
        [](Member& member) {
          Counted bootstrap(member.bootstrap);
          std::vector<std::unique_ptr<Team>> teams;
          for (int i = 0; i < 3; ++i) teams.push_back(std::move(*form(member, bootstrap)));
          EXPECT_EQ(bootstrap.exchanges, 3);
          std::set<TeamId> ids;
          for (const auto& team : teams) {
            EXPECT_TRUE(meet(*team).ok());
            ids.insert(static_cast<NewTeam&>(*team).id());
          }
          EXPECT_EQ(ids.size(), 3U);
          const auto hinted = form(member, bootstrap, {{"sluice_barrier", "all_to_one"}});
          EXPECT_TRUE(hinted.ok() && meet(**hinted).ok());
          EXPECT_GT(bootstrap.exchanges, 4);
        },
        adjust);
  }
}

TEST(Knowing, WhereOneDoesNotAllTellEachOtherAgain) {
  ArenaHub arenas;
  const auto adjust = [&](Rank, Process& process) {
    process.host = 1;
    process.arenas = arenas.source();
  };
  on_three(
      [](Member& member) {
        for (Rank stranger = 0; stranger < member.size; ++stranger) {
          Counted bootstrap(member.bootstrap, member.rank == stranger ? 7 + stranger : 1);
          const auto team = form(member, bootstrap);
          EXPECT_TRUE(team.ok() && meet(**team).ok());
          EXPECT_EQ(bootstrap.exchanges, 3);
        }
      },
      adjust);
  EXPECT_EQ(arenas.missing(), 6U) << "of the leader's two offers in vain";
}

TEST(Knowing, KeepsWhatWasUsedLast) {
  KnownGroups known_groups;
  const auto known = [](uint32_t number) {
    auto made = std::make_shared<KnownGroup>();
    made->id.number = number;
    made->peers.resize(3);
    return made;
  };
  for (uint32_t i = 0; i < KnownGroups::most; ++i) known_groups.put(i, known(i));
  known_groups.put(1, known(100));
  EXPECT_TRUE(known_groups.find(0, 0, 3));
  EXPECT_FALSE(known_groups.find(0, 1, 3));
  EXPECT_FALSE(known_groups.find(0, 0, 2));
  known_groups.put(99, known(99));
  EXPECT_FALSE(known_groups.find(2, 0, 3));
  ASSERT_TRUE(known_groups.find(0, 0, 3));
  EXPECT_EQ(known_groups.find(1, 0, 3)->id.number, 100U);
}

TEST(Keeping, AShelfHoldsSoManyAndGivesTheLowestNumber) {
  LoopbackHub hub;
  on_ranks(
      1, [&hub](Rank, const ProcessId& id) { return hub.endpoint(id); }, {},
      [](Member& member) {
        std::vector<std::unique_ptr<Team>> teams;
        for (size_t i = 0; i < TeamCache::most + 2; ++i) {
          Counted bootstrap(member.bootstrap, i < 4 ? 1 : 2);
          teams.push_back(std::move(*form(member, bootstrap)));
        }
        for (const size_t first : {3, 0, 2, 1}) {
          Team::retire(member.process, std::move(teams[first]));
        }
        for (size_t i = 4; i < teams.size(); ++i) {
          Team::retire(member.process, std::move(teams[i]));
        }
        TeamCache& team_cache = member.process.team_cache;
        EXPECT_FALSE(team_cache.remove(1, 0, 2));
        EXPECT_FALSE(team_cache.remove(3, 0, 1));
        const auto one = team_cache.remove(1, 0, 1),
                   two = team_cache.remove(1, 0, 1);  // 3 and 0 were evicted
        ASSERT_TRUE(one && two);
        EXPECT_LT(one->id(), two->id());
        EXPECT_FALSE(team_cache.remove(1, 0, 1));
        size_t others = 0;
        while (team_cache.remove(2, 0, 1)) ++others;
        EXPECT_EQ(others, TeamCache::most - 2);
      });
}

}  // namespace
}  // namespace sluice::testing
