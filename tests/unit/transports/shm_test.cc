// SPDX-License-Identifier: BSD-3-Clause
//
// Arenas between separate processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/unit/support/child.h"
#include "transports/shm/shm.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class Nobody final : public WaitPolicy {
 public:
  bool wait(uint32_t) override {
    std::this_thread::yield();
    return std::chrono::steady_clock::now() < until_;
  }

 private:
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + 20s;
};

const ProcessId first{1, 1}, second{2, 2};
const std::vector<ProcessId> both{first, second};

// Run by both processes: a hundred rounds in which each must see the other's number.
int meet(Rounds& rounds) {
  Nobody wait_policy;
  const uint32_t other = 1 - rounds.rank();
  for (uint64_t i = 0; i < 100; ++i) {
    rounds.begin(7, 1, &wait_policy);
    if (!rounds.open(1, 1)) return 1;
    *rounds.data(rounds.rank(), 1, 1) = static_cast<std::byte>(i + rounds.rank());
    rounds.publish(1, 1);
    if (!rounds.await(other, 1, 1)) return 2;
    if (*rounds.data(other, 1, 1) != static_cast<std::byte>(i + other)) return 3;
    rounds.mark_taken(1);
    rounds.end(1);
  }
  return 0;
}

TEST(Shm, TwoProcessesMeetInALease) {
  auto source = make_shm_source(first);
  const auto offer = source->offer(both, false);
  ASSERT_TRUE(offer.ok()) << offer.status().message();
  const pid_t child = fork();
  if (child == 0) {
    auto other = make_shm_source(second);
    auto arena = other->take_up(*offer, both, 1);
    _exit(arena.ok() ? meet((*arena)->rounds()) : 9);
  }
  auto arena = source->take_up(*offer, both, 0);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(meet((*arena)->rounds()), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE((*arena)->lives(1));
  source->settle(*offer, 0);
}

// This process plays both: the test is about leases, not memory.
TEST(Shm, LeasesAreReusedOnceAllHaveLetGo) {
  auto one = make_shm_source(first), two = make_shm_source(second);
  std::vector<ArenaSource::Offer> offers;
  const auto lease = [&] {
    auto offer = one->offer(both, false);
    EXPECT_TRUE(offer.ok());
    offers.push_back(*offer);
    return std::pair(std::move(*one->take_up(*offer, both, 0)),
                     std::move(*two->take_up(*offer, both, 1)));
  };
  auto a = lease(), b = lease();
  EXPECT_NE(offers[0], offers[1]);
  a.first.reset();
  auto c = lease();
  EXPECT_NE(offers[2], offers[0]) << "the other has not let go";
  a.second.reset();
  auto d = lease();
  EXPECT_EQ(offers[3], offers[0]);
  d.first->rounds().signals().abort("broken");
  d.first.reset();
  d.second.reset();
  auto e = lease();
  EXPECT_NE(offers[4], offers[0]) << "a team broke there";
  for (const auto& offer : offers) one->settle(offer, 0);
}

TEST(Shm, LeasesThatOneCouldNotTakeUpAreReusedToo) {
  auto one = make_shm_source(first);
  const auto offer = one->offer(both, false);
  ASSERT_TRUE(offer.ok());
  { ASSERT_TRUE(one->take_up(*offer, both, 0).ok()); }
  one->settle(*offer, 1);
  EXPECT_EQ(*one->offer(both, false), *offer);
}

// A process checks existing names when it names another segment.
TEST(Shm, WhoRemovesNamesOfTheDeadStaysAlive) {
  int there[2], back[2];
  ASSERT_EQ(pipe(there), 0);
  ASSERT_EQ(pipe(back), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto one = make_shm_source(first);
    const auto offer = one->offer(both, true);
    if (!offer.ok()) _exit(9);
    const auto arena = one->take_up(*offer, both, 0);
    char done;
    const bool told =
        arena.ok() && write(there[1], &*offer, sizeof(*offer)) > 0 && read(back[0], &done, 1) == 1;
    _exit(!told ? 9 : (*arena)->lives(1) ? 1 : 0);
  }
  close(there[1]);  // so that reads end if the child dies
  close(back[0]);
  ArenaSource::Offer offer;
  ASSERT_EQ(read(there[0], &offer, sizeof(offer)), ssize_t{sizeof(offer)});
  auto two = make_shm_source(second);
  const auto arena = two->take_up(offer, both, 1);
  EXPECT_TRUE(arena.ok());
  const std::vector<ProcessId> others{second, {3, 3}};
  const auto another = two->offer(others, true);
  ASSERT_TRUE(another.ok());
  two->settle(*another, 0);
  EXPECT_EQ(write(back[1], "", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "this process has lost its lock";
  for (const int end : {there[0], back[1]}) close(end);
}

TEST(Shm, WhatIsOfferedAgainIsReachedByName) {
  auto one = make_shm_source(first);
  const auto offer = one->offer(both, false), again = one->offer(both, true);
  ASSERT_TRUE(offer.ok());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(*offer, *again);
  const auto reaches = [&] { return make_shm_source(second)->take_up(*again, both, 1).ok(); };
  EXPECT_EQ(in_child(reaches), 1);
  one->settle(*again, 0);
  EXPECT_EQ(in_child(reaches), 0) << "the name is gone";
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd"), end;
  return static_cast<size_t>(std::distance(begin, end));
}

// The memory of all segments that this process has open, in bytes.
size_t memory() {
  std::map<ino_t, size_t> segments;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat about {};
    std::error_code gone;
    const std::string name = std::filesystem::read_symlink(each.path(), gone).string();
    const bool is_segment =
        name.starts_with("/memfd:sluice") || name.starts_with("/dev/shm/sluice");
    if (is_segment && stat(each.path().c_str(), &about) == 0) {
      segments[about.st_ino] = static_cast<size_t>(about.st_blocks) * 512;
    }
  }
  size_t sum = 0;
  for (const auto& [inode, bytes] : segments) sum += bytes;
  return sum;
}

// Several processes, all played by this one.
class Players {
 public:
  explicit Players(uint64_t count, size_t most_slots = usual_most_slots) {
    for (uint64_t i = 1; i <= count; ++i) {
      ids_.push_back({i, 100 - i});
      sources_.push_back(make_shm_source(ids_.back(), most_slots));
    }
  }
  ArenaSource& source(size_t player) { return *sources_[player]; }
  std::vector<ProcessId> ids(const std::vector<size_t>& players) const {
    std::vector<ProcessId> ids;
    for (const size_t player : players) ids.push_back(ids_[player]);
    return ids;
  }
  // Arenas for a team of some of these processes; the first is the leader.
  std::vector<std::unique_ptr<Arena>> form(const std::vector<size_t>& players) {
    std::vector<std::unique_ptr<Arena>> arenas;
    const std::vector<ProcessId> team = ids(players);
    ArenaSource& leader = *sources_[players[0]];
    const auto offer = leader.offer(team, false);
    EXPECT_TRUE(offer.ok()) << offer.status().message();
    for (uint32_t rank = 0; offer.ok() && rank < players.size(); ++rank) {
      auto taken = sources_[players[rank]]->take_up(*offer, team, rank);
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      if (taken.ok()) arenas.push_back(std::move(*taken));
    }
    if (offer.ok()) leader.settle(*offer, 0);
    return arenas;
  }

 private:
  std::vector<ProcessId> ids_;
  std::vector<std::unique_ptr<ArenaSource>> sources_;
};

// In a round, each rank's data must reach all ranks.
void expect_rounds(const std::vector<std::unique_ptr<Arena>>& arenas) {
  Nobody wait_policy;
  for (const auto& arena : arenas) {
    Rounds& rounds = arena->rounds();
    rounds.begin(7, 1, &wait_policy);
    ASSERT_TRUE(rounds.open(1, 1));
    *rounds.data(rounds.rank(), 1, 1) = static_cast<std::byte>(rounds.rank() + 1);
    rounds.publish(1, 1);
  }
  for (const auto& arena : arenas) {
    Rounds& rounds = arena->rounds();
    for (uint32_t rank = 0; rank < rounds.size(); ++rank) {
      ASSERT_TRUE(rounds.await(rank, 1, 1));
      EXPECT_EQ(*rounds.data(rank, 1, 1), static_cast<std::byte>(rank + 1));
    }
    rounds.mark_taken(1);
    rounds.end(1);
  }
}

TEST(Shm, ASegmentServesAllTeamsOfItsProcesses) {
  Players players(5);
  const auto all = players.form({0, 1, 2, 3, 4});
  const size_t before = open_descriptors();
  const auto some = players.form({3, 1, 4}), two = players.form({2, 0});
  EXPECT_EQ(open_descriptors(), before) << "no other segment";
  for (const auto* team : {&all, &some, &two}) expect_rounds(*team);
  const auto name = players.source(3).held_for(players.ids({3, 1, 4})).name;
  EXPECT_NE(name, SegmentName{});
  EXPECT_EQ(players.source(1).held_for(players.ids({3, 1, 4})).name, name);
  EXPECT_EQ(players.source(1).held_for(players.ids({0, 1})).name, name);
  const auto offer = players.source(4).offer(players.ids({4, 0}), false);
  ASSERT_TRUE(offer.ok());
  EXPECT_EQ(players.source(0).segment_of(*offer).name, name);
  EXPECT_EQ(Players(1).source(0).segment_of(*offer).name, SegmentName{});
}

// A lease is reused by ranks that were in different numbers of rounds before.
TEST(Shm, LeasesServeTeamsOfAnySizeInTurn) {
  Players players(4);
  const auto all = players.form({0, 1, 2, 3});
  for (const std::vector<size_t>& team :
       {std::vector<size_t>{2, 3}, {3, 2, 1, 0}, {1, 0}, {0, 1, 2}, {3, 0, 1, 2}}) {
    const auto arenas = players.form(team);
    for (int i = 0; i < 100; ++i) expect_rounds(arenas);
    EXPECT_FALSE(arenas[0]->rounds().signals().has_left(1));
  }
}

TEST(Shm, NoSegmentIsNamedThatDoesNotServeAll) {
  Players players(3);
  EXPECT_EQ(players.source(0).held_for(players.ids({0, 1})).name, SegmentName{});
  const auto two = players.form({0, 1});
  EXPECT_NE(players.source(1).held_for(players.ids({1, 0})).name, SegmentName{});
  EXPECT_EQ(players.source(0).held_for(players.ids({0, 1, 2})).name, SegmentName{});
  const auto all = players.form({2, 0, 1});
  EXPECT_NE(players.source(0).held_for(players.ids({0, 1, 2})).name, SegmentName{});
  EXPECT_NE(players.source(0).held_for(players.ids({0, 1})).name,
            players.source(0).held_for(players.ids({0, 1, 2})).name)
      << "the smallest is named";
}

// A rank may have released a segment that others still map.
TEST(Shm, WhoHasLostASegmentOfMoreSaysSo) {
  Players players(3);
  const auto all = players.form({0, 1, 2});
  const auto team = players.ids({0, 1});
  const auto offer = players.source(0).offer(team, false);
  ASSERT_TRUE(offer.ok());
  auto forgetful = make_shm_source(team[1]);
  EXPECT_FALSE(forgetful->take_up(*offer, team, 1).ok());
  players.source(0).settle(*offer, 2);
  const auto again = players.source(0).offer(team, true);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(forgetful->take_up(*again, team, 1).ok());
}

TEST(Shm, ThousandsOfLeasesTakeFewDescriptors) {
  Players players(4);
  std::vector<std::vector<std::unique_ptr<Arena>>> teams;
  teams.push_back(players.form({0, 1, 2, 3}));
  const size_t before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    teams.push_back(players.form(i % 3 == 0   ? std::vector<size_t>{3, 1}
                                 : i % 3 == 1 ? std::vector<size_t>{0, 1, 2, 3}
                                              : std::vector<size_t>{2, 3, 0}));
    ASSERT_EQ(teams.back().size(), i % 3 == 0 ? 2U : i % 3 == 1 ? 4U : 3U);
  }
  EXPECT_LE(open_descriptors() - before, 3U * 4U) << "three segments more for each process";
  expect_rounds(teams.back());
}

TEST(Shm, SlotsTakeMemoryWhileTheyAreHeld) {
  Players players(3);
  const auto arenas = players.form({0, 1, 2});
  const size_t before = memory();
  EXPECT_GT(before, 0U);
  for (const auto& arena : arenas) EXPECT_TRUE(arena->reserve_slots().ok());
  EXPECT_GE(memory() - before, 3 * sizeof(ArenaSlots));
  arenas[2]->give_slots_back();
  arenas[0]->give_slots_back();
  EXPECT_GE(memory() - before, 3 * sizeof(ArenaSlots)) << "while another may go to them";
  arenas[1]->give_slots_back();
  EXPECT_LE(memory(), before + 2 * 4096) << "but for pages at both ends";
}

TEST(Shm, SlotsAreNoMoreThanAllowed) {
  Players players(2, 3 * sizeof(ArenaSlots));
  const auto one = players.form({0, 1}), other = players.form({1, 0});
  EXPECT_TRUE(one[0]->reserve_slots().ok());
  EXPECT_TRUE(one[1]->reserve_slots().ok());
  EXPECT_TRUE(other[0]->reserve_slots().ok());
  const size_t before = memory();
  const Status refused = other[1]->reserve_slots();
  EXPECT_NE(refused.message().find("SLUICE_SHM_MEMORY"), std::string::npos) << refused.message();
  EXPECT_EQ(memory(), before);
  for (const auto& arena : other) arena->give_slots_back();
  for (const auto& arena : one) arena->give_slots_back();
  EXPECT_TRUE(other[0]->reserve_slots().ok());
  EXPECT_TRUE(other[1]->reserve_slots().ok()) << "what was given back can be had";
}

TEST(Shm, OffersThatMakeNoSenseAreRefused) {
  ArenaSource::Offer offer{};
  EXPECT_FALSE(make_shm_source(first)->take_up(offer, both, 0).ok());
  const auto good = make_shm_source(second)->offer(both, false);
  EXPECT_FALSE(good.ok() && make_shm_source(first)->take_up(*good, both, 0).ok())
      << "whoever offered it is gone";
}

TEST(Shm, ManySetsOfProcessesLeakNothing) {
  auto one = make_shm_source(first);
  size_t before = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const std::vector<ProcessId> set{first, {3, i}};
    const auto offer = one->offer(set, false);
    ASSERT_TRUE(offer.ok());
    { ASSERT_TRUE(one->take_up(*offer, set, 0).ok()); }
    one->settle(*offer, 0);
    if (i == 50) before = open_descriptors();
  }
  EXPECT_EQ(open_descriptors(), before);
}

// Even if this process makes and releases many other segments meanwhile.
TEST(Shm, WhatIsNamedStaysMappedForAWhile) {
  constexpr ProcessId first{1, 2};
  auto one = make_shm_source(first);
  const auto set_of = [](uint64_t i) { return std::vector<ProcessId>{first, {3, i}}; };
  const auto make_some = [&](uint64_t begin) {
    for (uint64_t i = begin; i < begin + 50; ++i) {
      const auto offer = one->offer(set_of(i), false);
      ASSERT_TRUE(offer.ok());
      ASSERT_TRUE(one->take_up(*offer, set_of(i), 0).ok());
      one->settle(*offer, 1);
    }
  };
  make_some(0);
  {
    const HeldSegment held = one->held_for(set_of(49));
    ASSERT_NE(held.name, SegmentName{});
    const auto offer = one->offer(set_of(49), false);
    ASSERT_TRUE(offer.ok());
    EXPECT_EQ(one->segment_of(*offer).name, held.name);
    make_some(50);
    EXPECT_TRUE(one->take_up(*offer, set_of(49), 0).ok());
  }
  make_some(100);
  EXPECT_EQ(one->held_for(set_of(49)).name, SegmentName{}) << "not for ever";
}

TEST(Shm, HostsHaveNumbers) {
  EXPECT_NE(shm_host(), 0U);
  EXPECT_EQ(shm_host(), shm_host());
}

}  // namespace
}  // namespace sluice
