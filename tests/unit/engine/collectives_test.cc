// SPDX-License-Identifier: BSD-3-Clause
//
// The engine runs every algorithm of every collective on real memory, over the loopback transport.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

// The input of `rank` at `index`.
int32_t value(Rank rank, size_t index) {
  return static_cast<int32_t>(rank * 1000003 + index * 7 + 1);
}

// The sum over so many ranks.
int32_t sum_at(Rank ranks, size_t index) {
  return static_cast<int32_t>(ranks * (ranks - 1) / 2 * 1000003 + ranks * (index * 7 + 1));
}

struct Blocks {
  std::vector<size_t> counts, offsets;
  size_t total = 0;
};

// Uneven blocks, some of them empty.
Blocks ragged(Rank ranks, size_t count) {
  Blocks blocks;
  for (Rank rank = 0; rank < ranks; ++rank) {
    blocks.counts.push_back(rank % 3 == 1 ? 0 : count + rank);
    blocks.offsets.push_back(blocks.total);
    blocks.total += blocks.counts.back();
  }
  return blocks;
}

Blocks even(Rank ranks, size_t count) {
  Blocks blocks;
  for (Rank rank = 0; rank < ranks; ++rank) {
    blocks.counts.push_back(count);
    blocks.offsets.push_back(rank * count);
  }
  blocks.total = ranks * count;
  return blocks;
}

// The program's buffer of a packed view: every second element of it holds data.
class Spaced final : public Packing {
 public:
  // fills: this Packing packs into the view's memory; otherwise it unpacks from it. A view that
  // must be packed starts with wrong values.
  Spaced(bool fills, std::vector<int32_t>& dense) : fills_(fills), dense_(dense) {
    apart_.assign(2 * dense.size(), -7);
    for (size_t i = 0; i < dense.size(); ++i) apart_[2 * i] = dense[i];
    if (fills) std::ranges::fill(dense, -5);
    moved_.assign(dense.size(), 0);
  }
  void move(size_t offset, size_t bytes) override {
    EXPECT_EQ(offset % 4, 0U);
    EXPECT_EQ(bytes % 4, 0U);
    int32_t* const dense = dense_.data();
    int32_t* const apart = apart_.data();
    int* const moved = moved_.data();
    int most = 0;
    for (size_t i = offset / 4; i < (offset + bytes) / 4; ++i) {
      if (++moved[i] > most) most = moved[i];
      (fills_ ? dense[i] : apart[2 * i]) = fills_ ? apart[2 * i] : dense[i];
    }
    EXPECT_TRUE(fills_ || most <= 1) << "unpacked twice";
  }
  // Moves the elements that were not moved yet; returns the content of the program's buffer.
  std::vector<int32_t> finish() {
    for (size_t i = 0; i < dense_.size(); ++i) {
      if (moved_[i] == 0) move(4 * i, 4);
    }
    std::vector<int32_t> found(dense_.size());
    size_t gaps = 0;  // gaps that are unchanged
    for (size_t i = 0; i < found.size(); ++i) {
      gaps += apart_[2 * i + 1] == -7;
      found[i] = apart_[2 * i];
    }
    EXPECT_EQ(gaps, found.size());
    return found;
  }

 private:
  bool fills_;
  std::vector<int32_t>& dense_;
  std::vector<int32_t> apart_;
  std::vector<int> moved_;  // how often each element was moved
};

// One collective on one rank: its memory, its call, and the expected result.
struct Problem {
  std::vector<int32_t> input, output, expected;
  Blocks in_blocks, out_blocks;
  Call call;
  bool in_place = false;

  std::byte* bytes(std::vector<int32_t>& memory) {
    return reinterpret_cast<std::byte*>(memory.data());
  }
};

struct Setting {
  Collective collective;
  Rank ranks;
  Rank root;
  size_t count;
  bool in_place;
  bool ragged;
};

template <typename At>
void fill(std::vector<int32_t>& memory, size_t size, const At& at) {
  memory.resize(size);
  for (size_t i = 0; i < size; ++i) memory[i] = at(i);
}

void make_reducing(const Setting& setting, Rank rank, Problem& problem) {
  const size_t n = setting.count;
  fill(problem.input, n, [&](size_t i) { return value(rank, i); });
  const Rank operands = operands_of(setting.collective, rank, setting.ranks);
  fill(problem.expected, n, [&](size_t i) { return sum_at(operands, i); });
  problem.call.input.count = problem.call.output.count = n;
  problem.output.assign(n, -1);
  const bool is_elsewhere = setting.collective == Collective::reduce && rank != setting.root;
  if (is_elsewhere || operands == 0) {
    problem.output.clear();
    problem.expected.clear();
  }
}

void make_reduce_scatter(const Setting& setting, Rank rank, Problem& problem) {
  const Blocks& blocks = problem.in_blocks =
      setting.ragged ? ragged(setting.ranks, setting.count) : even(setting.ranks, setting.count);
  fill(problem.input, blocks.total, [&](size_t i) { return value(rank, i); });
  fill(problem.expected, blocks.counts[rank],
       [&](size_t i) { return sum_at(setting.ranks, blocks.offsets[rank] + i); });
  problem.output.assign(blocks.counts[rank], -1);
  problem.call.input.counts = blocks.counts;
  problem.call.input.offsets = blocks.offsets;
  problem.call.output.count = blocks.counts[rank];
}

void make_broadcast(const Setting& setting, Rank rank, Problem& problem) {
  fill(problem.expected, setting.count, [&](size_t i) { return value(setting.root, i); });
  problem.output = problem.expected;
  if (rank != setting.root) problem.output.assign(setting.count, -1);
  problem.call.output.count = setting.count;
}

void make_allgather(const Setting& setting, Rank rank, Problem& problem) {
  const Blocks& blocks = problem.out_blocks =
      setting.ragged ? ragged(setting.ranks, setting.count) : even(setting.ranks, setting.count);
  fill(problem.input, blocks.counts[rank], [&](size_t i) { return value(rank, i); });
  problem.output.assign(blocks.total, -1);
  for (Rank from = 0; from < setting.ranks; ++from) {
    for (size_t i = 0; i < blocks.counts[from]; ++i) problem.expected.push_back(value(from, i));
  }
  problem.call.input.count = blocks.counts[rank];
  problem.call.output.counts = blocks.counts;
  problem.call.output.offsets = blocks.offsets;
}

Blocks at_root(const Setting& setting, Rank rank) {
  if (rank != setting.root) return {};
  return setting.ragged ? ragged(setting.ranks, setting.count) : even(setting.ranks, setting.count);
}

size_t own_count(const Setting& setting, Rank rank) {
  return setting.ragged ? ragged(setting.ranks, setting.count).counts[rank] : setting.count;
}

void make_gather(const Setting& setting, Rank rank, Problem& problem) {
  const Blocks& blocks = problem.out_blocks = at_root(setting, rank);
  problem.call.input.count = own_count(setting, rank);
  fill(problem.input, problem.call.input.count, [&](size_t i) { return value(rank, i); });
  problem.output.assign(blocks.total, -1);
  for (Rank from = 0; from < blocks.counts.size(); ++from) {
    for (size_t i = 0; i < blocks.counts[from]; ++i) problem.expected.push_back(value(from, i));
  }
  problem.call.output.counts = blocks.counts;
  problem.call.output.offsets = blocks.offsets;
}

void make_scatter(const Setting& setting, Rank rank, Problem& problem) {
  const Blocks& blocks = problem.in_blocks = at_root(setting, rank);
  for (Rank to = 0; to < blocks.counts.size(); ++to) {
    for (size_t i = 0; i < blocks.counts[to]; ++i) problem.input.push_back(value(to, i));
  }
  problem.call.output.count = own_count(setting, rank);
  fill(problem.expected, problem.call.output.count, [&](size_t i) { return value(rank, i); });
  problem.output.assign(problem.expected.size(), -1);
  problem.call.input.counts = blocks.counts;
  problem.call.input.offsets = blocks.offsets;
}

// Rank a sends (a + b) % 4 elements more than `count` to b, so that blocks differ if allowed.
void make_alltoall(const Setting& setting, Rank rank, Problem& problem) {
  for (Blocks* blocks : {&problem.in_blocks, &problem.out_blocks}) {
    for (Rank peer = 0; peer < setting.ranks; ++peer) {
      blocks->counts.push_back(setting.count + (setting.ragged ? (rank + peer) % 4 : 0));
      blocks->offsets.push_back(blocks->total);
      blocks->total += blocks->counts.back();
    }
  }
  for (Rank peer = 0; peer < setting.ranks; ++peer) {
    for (size_t i = 0; i < problem.in_blocks.counts[peer]; ++i) {
      problem.input.push_back(value(rank * 64 + peer, i));
      problem.expected.push_back(value(peer * 64 + rank, i));
    }
  }
  problem.output.assign(problem.out_blocks.total, -1);
  problem.call.input.counts = problem.in_blocks.counts;
  problem.call.input.offsets = problem.in_blocks.offsets;
  problem.call.output.counts = problem.out_blocks.counts;
  problem.call.output.offsets = problem.out_blocks.offsets;
}

bool is_scatter(Collective collective) {
  return collective == Collective::scatter || collective == Collective::scatterv;
}

// To one rank or to all.
bool is_gather(Collective collective) {
  return collective == Collective::gather || collective == Collective::gatherv ||
         collective == Collective::allgather || collective == Collective::allgatherv;
}

void place(const Setting& setting, Rank rank, Problem& problem) {
  Call& call = problem.call;
  call.input.base = problem.bytes(problem.input);
  call.output.base = problem.bytes(problem.output);
  if (!setting.in_place) return;
  if (is_scatter(setting.collective) && rank == setting.root) {
    call.output.base = call.input.base + problem.in_blocks.offsets[rank] * sizeof(int32_t);
    problem.output = problem.expected;  // it is in the input
    return;
  }
  const bool reducing = setting.collective != Collective::reduce_scatter &&
                        is_reducing(setting.collective) && !problem.output.empty();
  const bool gathering = is_gather(setting.collective) && !problem.out_blocks.counts.empty();
  if (!reducing && !gathering) return;
  const size_t offset = gathering ? problem.out_blocks.offsets[rank] : 0;
  std::copy(problem.input.begin(), problem.input.end(), problem.output.begin() + offset);
  call.input.base = call.output.base + offset * sizeof(int32_t);
}

void make(const Setting& setting, Rank rank, Problem& problem) {
  problem.call.collective = setting.collective;
  problem.call.root = setting.root;
  problem.call.element = sizeof(int32_t);
  problem.call.ragged = setting.ragged && has_common_size(setting.collective);
  if (is_reducing(setting.collective)) {
    problem.call.reduction.kernel = find_kernel(Op::sum, Type::int32);
  }
  switch (setting.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      make_reducing(setting, rank, problem);
      break;
    case Collective::reduce_scatter:
      make_reduce_scatter(setting, rank, problem);
      break;
    case Collective::broadcast:
      make_broadcast(setting, rank, problem);
      break;
    case Collective::allgather:
    case Collective::allgatherv:
      make_allgather(setting, rank, problem);
      break;
    case Collective::gather:
    case Collective::gatherv:
      make_gather(setting, rank, problem);
      break;
    case Collective::scatter:
    case Collective::scatterv:
      make_scatter(setting, rank, problem);
      break;
    case Collective::alltoall:
    case Collective::alltoallv:
      make_alltoall(setting, rank, problem);
      break;
    case Collective::barrier:
      break;
  }
  place(setting, rank, problem);
}

// Runs a call in which the program's input, output or both are not dense.
void run_apart(const Setting& setting, Member& member, int which) {
  Problem problem;
  make(setting, member.rank, problem);
  const bool filled = setting.collective == Collective::broadcast && member.rank == setting.root;
  Spaced input(true, problem.input), output(filled, problem.output);
  if (which & 1) problem.call.input.source = &input;
  if (which & 2) (filled ? problem.call.output.source : problem.call.output.sink) = &output;
  if (!(which & 1)) problem.input = input.finish();
  if (!(which & 2) && filled) problem.output = output.finish();
  problem.call.input.base = problem.bytes(problem.input);
  problem.call.output.base = problem.bytes(problem.output);
  const Status status = member.team->run(problem.call);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto found = which & 2 ? output.finish() : problem.output;
  ASSERT_EQ(found, problem.expected)
      << "rank " << member.rank << " count " << setting.count << " apart " << which;
}

std::vector<Rank> sizes() { return sweep<Rank>({1, 2, 3, 4, 5, 8}, {1, 2, 3, 5, 8}, {2, 3}); }
// (0 not first: cells would then be left out)
std::vector<size_t> counts() {
  return sweep<size_t>({1, 5, 0, 1023, 20011}, {5, 0, 20011}, {5, 4099});
}

EndpointMaker loopback(LoopbackHub& hub) {
  return [&hub](Rank, const ProcessId& id) { return hub.endpoint(id); };
}

// The hosts that algorithms for several hosts get: two, alternating ranks, or, if they can't serve
// those, each half of the ranks; others get one host.
std::vector<uint32_t> hosts_for(const Algorithm& algorithm, Rank ranks) {
  std::vector<uint32_t> hosts(ranks, 0);
  if (!algorithm.needs.hosts) return hosts;
  for (Rank rank = 0; rank < ranks; ++rank) hosts[rank] = rank % 2;
  if (ranks < 2 || can_serve(algorithm, ranks, false, false, hosts)) return hosts;
  for (Rank rank = 0; rank < ranks; ++rank) hosts[rank] = 2 * rank / ranks;
  return hosts;
}

// And algorithms for several groups: two ranks each.
std::vector<uint32_t> groups_for(const Algorithm& algorithm, Rank ranks) {
  std::vector<uint32_t> groups;
  for (Rank rank = 0; algorithm.needs.groups && rank < ranks; ++rank) groups.push_back(rank / 2);
  return groups;
}

// All roots, sizes and placements of one algorithm on so many ranks, in one team.
void run_all(const Algorithm& algorithm, Rank ranks) {
  LoopbackHub hub;
  ArenaHub arenas;
  const std::vector<uint32_t> hosts = hosts_for(algorithm, ranks);
  const auto force = [&](Rank rank, Process& process) {
    if (algorithm.shm) process.arenas = arenas.source();
    process.host = 1 + hosts[rank];
    process.knobs.algorithm[static_cast<uint32_t>(algorithm.collective)] = algorithm.name;
    if (algorithm.needs.groups) process.knobs.groups = "2";
    process.knobs.segment = 4096;
    process.knobs.radix = 3;
  };
  on_ranks(ranks, loopback(hub), force, [&](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    const bool may_be_ragged = algorithm.collective == Collective::allgatherv ||
                               algorithm.collective == Collective::reduce_scatter ||
                               !has_common_size(algorithm.collective);
    for (const size_t count : counts()) {
      for (Rank root = 0; root < (is_rooted(algorithm.collective) ? ranks : 1); ++root) {
        for (const bool in_place : {false, true}) {
          for (const bool uneven : {false, true}) {
            if (uneven && (!may_be_ragged || algorithm.needs.uniform)) continue;
            const Setting setting{algorithm.collective, ranks, root, count, in_place, uneven};
            Problem problem;
            make(setting, member.rank, problem);
            ASSERT_TRUE(member.team->carries(problem.call));
            const Status status = member.team->run(problem.call);
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_EQ(problem.output, problem.expected)
                << algorithm.name << " ranks " << ranks << " rank " << member.rank << " root "
                << root << " count " << count << " in place " << in_place << " ragged " << uneven;
            // Some ranks, a different mix for each case, have buffers that are not dense.
            if (!in_place) run_apart(setting, member, (member.rank + count + root) % 4);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

class EachCollective : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Collectives, EachCollective, ::testing::Range(0U, collective_count),
                         [](const auto& param) {
                           return std::string(to_string(static_cast<Collective>(param.param)));
                         });

TEST_P(EachCollective, EveryAlgorithmOnRealMemory) {
  for (const Algorithm& algorithm : algorithms()) {
    if (static_cast<uint32_t>(algorithm.collective) != GetParam()) continue;
    for (const Rank ranks : sizes()) {
      const auto hosts = hosts_for(algorithm, ranks), groups = groups_for(algorithm, ranks);
      if (!can_serve(algorithm, ranks, false, false, hosts, groups)) continue;
      SCOPED_TRACE(std::string(to_string(algorithm.collective)) + " " + algorithm.name);
      run_all(algorithm, ranks);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(algorithms().size(), 30U);
}

TEST(Collectives, RanksInDifferentCollectivesAreToldSo) {
  LoopbackHub hub;
  std::string messages[2];
  on_ranks(2, loopback(hub), {}, [&](Member& member) {
    ASSERT_TRUE(member.team);
    Problem problem;
    const Collective mine = member.rank == 0 ? Collective::allreduce : Collective::broadcast;
    make({mine, 2, 1, 10, false, false}, member.rank, problem);
    if (mine == Collective::allreduce) problem.call.root = 0;
    messages[member.rank] = member.team->run(problem.call).message();
    if (member.rank == 1) {  // the broadcast's root may be done before anyone detects it
      Call barrier;
      barrier.collective = Collective::barrier;
      EXPECT_FALSE(member.team->run(barrier).ok());
    }
  });
  EXPECT_NE(messages[0].find("rank 1"), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find("broadcast with root 1"), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find("allreduce"), std::string::npos) << messages[0];
}

// The bytes that a message names: of the call if ranks know these, else of a block.
size_t named_bytes(const Setting& setting) {
  const bool has_blocks =
      setting.collective == Collective::gather || setting.collective == Collective::scatter;
  return sizeof(int32_t) * setting.count * (has_blocks ? setting.ranks : 1);
}

// What each of two ranks is told of a call for which rank 1 has another setting.
std::vector<std::string> told(const Setting& first, const Setting& second, ArenaHub* arenas) {
  LoopbackHub hub;
  std::vector<std::string> messages(2);
  const auto adjust = [&](Rank, Process& process) {
    process.knobs.segment = 4096;
    if (arenas) process.arenas = arenas->source();
    if (arenas) process.host = 1;
  };
  on_ranks(2, loopback(hub), adjust, [&](Member& member) {
    ASSERT_TRUE(member.team);
    const Setting& mine = member.rank == 0 ? first : second;
    Problem problem;
    make(mine, member.rank, problem);
    if (has_common_size(first.collective)) problem.call.bytes = named_bytes(mine);
    const Status status = member.team->run(problem.call);
    messages[member.rank] = status.message();
    // The one that was done before anyone noticed is told in the next call.
    Call barrier;
    const std::string later = member.team->run(barrier).message();
    if (messages[member.rank].empty()) messages[member.rank] = later;
    EXPECT_EQ(later, messages[member.rank]) << "errors are sticky";
  });
  return messages;
}

void expect_told(Collective collective, size_t first, size_t second, ArenaHub* arenas) {
  const Setting one{collective, 2, 0, first, false, false},
      other{collective, 2, 0, second, false, false};
  const auto has_both = [](const std::string& message, size_t theirs, size_t own) {
    return message.find(" " + std::to_string(theirs) + " bytes") != message.npos &&
           message.find(" " + std::to_string(own) + ":") != message.npos;
  };
  for (const std::string& message : told(one, other, arenas)) {
    EXPECT_TRUE(has_both(message, named_bytes(one), named_bytes(other)) ||
                has_both(message, named_bytes(other), named_bytes(one)))
        << to_string(collective) << " of " << first << " and " << second << ": " << message;
  }
}

constexpr Collective with_root_blocks[] = {Collective::gather, Collective::gatherv,
                                           Collective::scatter, Collective::scatterv};

// The sizes are those of the call, or of a block, also where messages are cut into segments (of 16
// KB here), and where segments do not differ but for their number.
TEST(Collectives, RanksWithDifferentCountsAreToldSo) {
  constexpr std::pair<size_t, size_t> counts[] = {{10, 11},     {11, 10},     {50'000, 50'001},
                                                  {50'000, 10}, {4096, 8192}, {8192, 4096}};
  for (const auto& [first, second] : counts) {
    for (const Collective each : {Collective::allreduce, Collective::alltoallv}) {
      expect_told(each, first, second, nullptr);
    }
    for (const Collective each : with_root_blocks) expect_told(each, first, second, nullptr);
  }
  for (const Collective each : with_root_blocks) {
    expect_told(each, 0, 10, nullptr);
    expect_told(each, 10, 0, nullptr);
    expect_told(each, 0, 50'000, nullptr);
  }
}

// Ranks with different counts may have chosen different algorithms, and a rank may already be in
// its next call.
TEST(Collectives, RanksOfOneHostWithDifferentCountsAreToldSo) {
  constexpr std::pair<size_t, size_t> counts[] = {{10, 11},     {512, 256},   {1024, 512},
                                                  {40, 50'000}, {50'000, 40}, {4096, 8192}};
  for (const auto& [first, second] : counts) {
    for (const Collective each : with_root_blocks) {
      ArenaHub arenas;
      expect_told(each, first, second, &arenas);
    }
  }
}

TEST(Collectives, TheOthersLeaveWhenARankGivesUp) {
  LoopbackHub hub;
  on_ranks(5, loopback(hub), {}, [&](Member& member) {
    ASSERT_TRUE(member.team);
    if (member.rank == 3) {  // ends without BYE
      member.process.endpoint.reset();
      return;
    }
    Problem problem;
    make({Collective::allreduce, 5, 0, 100000, false, false}, member.rank, problem);
    const Status status = member.team->run(problem.call);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("rank 3"), std::string::npos) << status.message();
  });
}

TEST(Collectives, ADeadlineNamesTheRanksWaitedFor) {
  LoopbackHub hub;
  const auto hurry = [](Rank, Process& process) { process.knobs.timeout = 0.2; };
  std::atomic<bool> ended{false};
  on_ranks(2, loopback(hub), hurry, [&](Member& member) {
    ASSERT_TRUE(member.team);
    if (member.rank == 1) {
      while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    Call barrier;
    barrier.collective = Collective::barrier;
    const Status status = member.team->run(barrier);
    ended = true;
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("SLUICE_TIMEOUT"), std::string::npos) << status.message();
  });
}

}  // namespace
}  // namespace sluice::testing
