// SPDX-License-Identifier: BSD-3-Clause
//
// Algorithms in groups as the engine runs them, on ranks that say where they are: any groups, every
// root, lengths around those of lines and slots, and calls in a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

// x -> a x + b, modulo 2^32: composition is associative and does not commute.
struct Map {
  uint32_t a, b;
  bool operator==(const Map&) const = default;
};
using Maps = std::vector<Map>;

Map composed(const Map& left, const Map& right) {
  return {left.a * right.a, left.a * right.b + left.b};
}

Map added(const Map& left, const Map& right) { return {left.a + right.a, left.b + right.b}; }

template <Map (*combine)(const Map&, const Map&)>
void kernel(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto *l = static_cast<const Map*>(left), *r = static_cast<const Map*>(right);
  auto* const to = static_cast<Map*>(out);
  for (size_t i = 0; i < n; ++i) to[i] = combine(l[i], r[i]);
}

Map map_of(Rank rank, size_t index, uint32_t call) {
  return {2 * rank + 3, static_cast<uint32_t>(index * 31 + rank + call)};
}

Maps maps_of(Rank rank, size_t count, uint32_t call) {
  Maps maps(count);
  Map* const to = maps.data();
  for (size_t i = 0; i < count; ++i) to[i] = map_of(rank, i, call);
  return maps;
}

Maps combined(Rank ranks, size_t count, uint32_t call, bool ordered) {
  Maps maps(count);
  Map* const to = maps.data();
  for (size_t i = 0; i < count; ++i) {
    Map all = map_of(0, i, call);
    for (Rank rank = 1; rank < ranks; ++rank) {
      const Map next = map_of(rank, i, call);
      all = ordered ? composed(all, next) : added(all, next);
    }
    to[i] = all;
  }
  return maps;
}

Maps gathered(Rank ranks, const std::vector<size_t>& counts, uint32_t call) {
  Maps result;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Maps each = maps_of(rank, counts[rank], call);
    result.insert(result.end(), each.begin(), each.end());
  }
  return result;
}

View view_of(Maps& maps) {
  return {reinterpret_cast<std::byte*>(maps.data()), maps.size(), {}, {}};
}

// One call on one rank, what it gives and what it should.
struct Trial {
  Call call;
  Maps input, output, expected;
  std::vector<size_t> counts, offsets;

  void finish(Collective collective, Rank root) {
    call.collective = collective;
    call.root = root;
    call.element = sizeof(Map);
    call.input = view_of(input);
    call.output = view_of(output);
    if (!counts.empty()) {
      call.output.counts = counts;
      call.output.offsets = offsets;
    }
    call.bytes = std::max(input.size(), output.size()) * sizeof(Map);
  }
};

void make_reduction(Trial& trial, const Member& member, Collective collective, Rank root,
                    size_t count, uint32_t number, bool ordered, bool in_place) {
  const bool gets = collective == Collective::allreduce || member.rank == root;
  trial.input = maps_of(member.rank, count, number);
  trial.output.resize(gets ? count : 0);
  if (gets) trial.expected = combined(member.size, count, number, ordered);
  trial.finish(collective, root);
  trial.call.bytes = count * sizeof(Map);
  if (gets && in_place) {
    trial.output = trial.input;
    trial.call.input = trial.call.output = view_of(trial.output);
  }
  trial.call.reduction = {ordered ? kernel<composed> : kernel<added>, nullptr, !ordered};
}

void make_broadcast(Trial& trial, const Member& member, Rank root, size_t count, uint32_t number) {
  trial.expected = maps_of(root, count, number);
  trial.output = member.rank == root ? trial.expected : Maps(count);
  trial.finish(Collective::broadcast, root);
}

// ragged: blocks of different sizes, some empty.
void make_gathering(Trial& trial, const Member& member, bool ragged, size_t count,
                    uint32_t number) {
  for (Rank rank = 0; rank < member.size; ++rank) {
    trial.offsets.push_back(rank == 0 ? 0 : trial.offsets.back() + trial.counts.back());
    trial.counts.push_back(ragged ? (rank % 3 == 1 ? 0 : count + rank) : count);
  }
  trial.input = maps_of(member.rank, trial.counts[member.rank], number);
  trial.expected = gathered(member.size, trial.counts, number);
  trial.output.resize(trial.expected.size());
  trial.finish(ragged ? Collective::allgatherv : Collective::allgather, 0);
  trial.call.ragged = ragged;
}

class Grouped : public ::testing::Test {
 protected:
  // Each rank with a processor of its own, on the node that `nodes` says.
  void run(const std::vector<uint32_t>& nodes, const Body& body, const Adjust& adjust = {}) {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust locate = [&](Rank rank, Process& process) {
      process.arenas = arenas_.source();
      process.host = 1;
      process.locate = [&nodes, rank](bool) {
        Locality locality;
        locality.node = 1 + nodes[rank];
        locality.processors[0] = uint64_t{1} << rank;
        return locality;
      };
      if (adjust) adjust(rank, process);
    };
    on_ranks(static_cast<Rank>(nodes.size()), endpoints, locate, body);
  }
  static Adjust forced() {
    return [](Rank, Process& process) {
      for (const Algorithm& algorithm : algorithms()) {
        std::string& name = process.knobs.algorithm[static_cast<size_t>(algorithm.collective)];
        if (algorithm.needs.groups) name = algorithm.name;
      }
    };
  }

  LoopbackHub hub_;
  ArenaHub arenas_;
};

void carry_out(Trial& trial, const Member& member, const char* algorithm) {
  const Algorithm* const chosen = member.team->choose(trial.call);
  ASSERT_TRUE(chosen);
  if (algorithm) {
    ASSERT_STREQ(chosen->name, algorithm);
  }
  const Status status = member.team->run(trial.call);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(trial.output, trial.expected)
      << to_string(trial.call.collective) << " rank " << member.rank << " of " << member.size
      << " root " << trial.call.root << " bytes " << trial.call.bytes;
}

// The groups of so many ranks: halves; one large and one of a single rank; by threes; in turns.
std::vector<std::vector<uint32_t>> layouts(Rank ranks) {
  std::vector<uint32_t> halves, lonely, threes, turns;
  for (Rank rank = 0; rank < ranks; ++rank) {
    halves.push_back(rank >= ranks / 2);
    lonely.push_back(rank + 1 == ranks);
    threes.push_back(rank / 3);
    turns.push_back(rank % 3);
  }
  return {halves, lonely, threes, turns};
}

// Beside and behind what a line holds, a short slot and a slot: 12, 256 and 4096 maps.
std::vector<Rank> sizes() { return sweep<Rank>({8, 9, 13, 16, 17}, {8, 17}, {9}); }
std::vector<size_t> counts() {
  return sweep<size_t>({0, 1, 12, 13, 256, 257, 4096, 4097, 9000}, {0, 1, 13, 257, 4097, 9000},
                       {0, 12, 257, 4097});
}

std::vector<Rank> roots(Rank ranks) {
  std::vector<Rank> roots;
  for (Rank root = 0; root < ranks; root += sweep(1U, 2U, 4U)) roots.push_back(root);
  return roots;
}

// body(ranks, nodes) for every number of ranks in every layout, until one fails.
template <typename Body>
void in_all_layouts(const Body& body) {
  for (const Rank ranks : sizes()) {
    for (const auto& nodes : layouts(ranks)) {
      body(ranks, nodes);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(Grouped, ReductionsKeepOperandsInOrderWhereGroupsAreRuns) {
  in_all_layouts([&](Rank ranks, const auto& nodes) {
    const bool runs = std::ranges::is_sorted(nodes);
    run(
        nodes,
        [&](Member& member) {
          ASSERT_TRUE(member.team) << member.formed.message();
          uint32_t number = 0;
          for (const size_t count : counts()) {
            for (const bool ordered : {false, true}) {
              const char* const name = runs || !ordered ? "grouped" : nullptr;
              for (const bool in_place : {false, true}) {
                Trial trial;
                make_reduction(trial, member, Collective::allreduce, 0, count, ++number, ordered,
                               in_place);
                ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, name));
              }
              for (const Rank root : roots(ranks)) {
                Trial trial;
                make_reduction(trial, member, Collective::reduce, root, count, ++number, ordered,
                               ordered != (root % 8 == 0));
                ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, name));
              }
            }
          }
        },
        forced());
  });
}

TEST_F(Grouped, DataComesToAll) {
  in_all_layouts([&](Rank ranks, const auto& nodes) {
    run(
        nodes,
        [&](Member& member) {
          ASSERT_TRUE(member.team) << member.formed.message();
          uint32_t number = 0;
          for (const size_t count : counts()) {
            for (const Rank root : roots(ranks)) {
              Trial trial;
              make_broadcast(trial, member, root, count, ++number);
              ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, "grouped"));
            }
            for (const bool ragged : {false, true}) {
              Trial trial;
              make_gathering(trial, member, ragged, count, ++number);
              ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, "grouped"));
            }
          }
        },
        forced());
  });
}

// Nobody leaves a barrier before all have come.
TEST_F(Grouped, BarriersHoldEverybody) {
  in_all_layouts([&](Rank ranks, const auto& nodes) {
    std::atomic<uint32_t> arrived{0};
    run(nodes, [&](Member& member) {
      ASSERT_TRUE(member.team) << member.formed.message();
      std::mt19937 own(member.rank);
      for (uint32_t i = 1; i <= 40; ++i) {
        if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 200));
        ++arrived;
        Trial trial;
        trial.finish(Collective::barrier, 0);
        ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, "grouped")) << "by the rules";
        ASSERT_GE(arrived, i * ranks);
      }
    });
  });
}

// A random program by the rules, the same on all ranks: calls in groups and others, of any length,
// without barriers between them; each rank dawdles where it likes.
TEST_F(Grouped, CallsInARowKeepApart) {
  const auto seed = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());
  const uint32_t calls = sweep(300U, 150U, 50U);
  for (const auto& nodes : layouts(9)) {
    std::atomic<uint32_t> in_groups{0};
    run(nodes, [&](Member& member) {
      ASSERT_TRUE(member.team) << member.formed.message();
      std::mt19937 common(seed), own(seed + member.rank + 1);
      for (uint32_t number = 0; number < calls; ++number) {
        const uint32_t kind = common() % 5;
        const Rank root = common() % member.size;
        const size_t count = std::array<size_t, 6>{0, 1, 5, 100, 600, 12000}[common() % 6];
        if (own() % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
        Trial trial;
        if (kind == 0) {
          make_reduction(trial, member, Collective::allreduce, 0, count, number, true, false);
        } else if (kind == 1) {
          make_reduction(trial, member, Collective::reduce, root, count, number, false, false);
        } else if (kind == 2) {
          make_broadcast(trial, member, root, count, number);
        } else if (kind == 3) {
          make_gathering(trial, member, number % 2 == 0, count / 9, number);
        } else {
          trial.finish(Collective::barrier, 0);
        }
        in_groups += member.team->choose(trial.call)->needs.groups;
        ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, nullptr)) << "seed " << seed;
      }
    });
    EXPECT_GT(in_groups, 9 * calls / 6);
    if (HasFailure()) return;
  }
}

TEST_F(Grouped, SettingsSayHowLargeGroupsAreOrThatThereAreNone) {
  for (const auto& [setting, expected] : {std::pair("3", "grouped"), std::pair("off", "flat")}) {
    run(
        std::vector<uint32_t>(9, 0),
        [&](Member& member) {
          Trial trial;
          trial.finish(Collective::barrier, 0);
          ASSERT_NO_FATAL_FAILURE(carry_out(trial, member, expected));
        },
        [&](Rank, Process& process) { process.knobs.groups = setting; });
  }
}

TEST_F(Grouped, RanksInDifferentCollectivesAreToldSo) {
  std::vector<std::string> messages(8);
  run({0, 0, 0, 0, 1, 1, 1, 1}, [&](Member& member) {
    Trial trial;
    trial.finish(Collective::barrier, 0);
    if (member.rank == 6)
      make_reduction(trial, member, Collective::allreduce, 0, 5, 1, true, false);
    messages[member.rank] = member.team->run(trial.call).message();
  });
  EXPECT_NE(messages[4].find("is in"), std::string::npos) << messages[4];
  for (const std::string& message : messages) EXPECT_FALSE(message.empty());
}

TEST_F(Grouped, ADeadRankIsNoticedByAll) {
  std::vector<std::string> messages(9);
  run({0, 0, 0, 1, 1, 1, 2, 2, 2}, [&](Member& member) {
    if (member.rank == 7) return arenas_.kill(7);
    Trial trial;
    trial.finish(Collective::barrier, 0);
    messages[member.rank] = member.team->run(trial.call).message();
  });
  for (Rank rank = 0; rank < 9; ++rank) {
    if (rank == 7) continue;
    EXPECT_NE(messages[rank].find("rank 7"), std::string::npos) << messages[rank];
  }
}

}  // namespace
}  // namespace sluice::testing
