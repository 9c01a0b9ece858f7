// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of calls on devices, which CUDA IPC or NCCL could do, as tests say in place of votes.
#include <algorithm>
#include <barrier>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/routes.h"
#include "tests/unit/engine/programs_rank.h"
#include "tests/unit/engine/trials_rig.h"

namespace sluice::testing {
namespace {

class TrialsOnDevices : public TrialsRig {};

// Who may do a call on devices, by name; "untried NAME" if that does it without a trial.
std::string candidates_of(Member& member, const Call& call, const CarrierSet& able) {
  Way way;
  EXPECT_TRUE(member.team->find_way(call, able, &way).ok());
  if (!way.of) return std::string("untried ") + (way.algorithm ? way.algorithm->name : "mpi");
  std::string names;
  for (uint8_t i = 0; i < way.of->trial.candidates(); ++i) {
    const Algorithm* const each = way.of->candidates[i];
    EXPECT_EQ(each == way.of->candidates[way.of->ruled], i == way.of->ruled);
    names += std::string(i > 0 ? " " : "") + (i == way.of->ruled ? "ruled" : each->name);
  }
  EXPECT_TRUE(way.of->is_interchangeable || !way.of->is_on_device) << "nothing is made aside";
  return names;
}

// Of integers all candidates give the same bits; of floating-point numbers, CUDA IPC and the
// algorithms of an arena do; what is large, or compares those, is none of MPI's.
TEST_P(TrialsOnDevices, have_these_candidates) {
  constexpr CarrierSet none{false, false}, ipc{true, false}, nccl{false, true}, both{true, true};
  run(3, [&](Member& member) {
    SmallAllreduce<int32_t> integers(member.rank);
    SmallAllreduce<double> doubles(member.rank);
    Call large = integers.call;
    large.bytes = size_t{64} << 20;
    EXPECT_EQ(candidates_of(member, integers.call, none), "ruled mpi");
    EXPECT_EQ(candidates_of(member, integers.call, ipc), "ruled mpi ipc");
    EXPECT_EQ(candidates_of(member, integers.call, nccl), "nccl ruled mpi");
    EXPECT_EQ(candidates_of(member, integers.call, both), "nccl ruled mpi ipc");
    EXPECT_EQ(candidates_of(member, large, none).substr(0, 7), "untried");
    EXPECT_EQ(candidates_of(member, large, both), "nccl ruled ipc");
    EXPECT_EQ(candidates_of(member, doubles.call, none), "ruled mpi");
    EXPECT_EQ(candidates_of(member, doubles.call, both), "untried nccl");
    const std::string by_ipc = candidates_of(member, doubles.call, ipc);
    const bool is_in_order = GetParam().arena;
    EXPECT_EQ(by_ipc, is_in_order ? "ruled ipc" : "ruled mpi");
    EXPECT_EQ(member.team->say_of(doubles.call, Carrier::ipc),
              is_in_order ? Team::Say::if_fast : Team::Say::if_named);
    EXPECT_EQ(member.team->say_of(doubles.call, Carrier::nccl), Team::Say::if_named);
    EXPECT_EQ(member.team->say_of(integers.call, Carrier::nccl), Team::Say::if_fast);
  });
}

// (Rivals are for calls on the host.)
TEST_P(TrialsOnDevices, have_no_other_algorithms) {
  change = [&](Rank, Process& process) { process.knobs.choice = "free"; };
  run(3, [&](Member& member) {
    SmallAllreduce<int32_t> integers(member.rank);
    EXPECT_EQ(candidates_of(member, integers.call, {true, false}), "ruled mpi ipc");
  });
}

// From the call after the window's until the trial is repeated; a winner is asked for always.
TEST_P(TrialsOnDevices, go_without_carriers_that_have_lost) {
  constexpr CarrierSet ipc{true, false}, nccl{false, true};
  for (const Algorithm* winner :
       {static_cast<const Algorithm*>(nullptr), &routes::mpi, &routes::ipc}) {
    std::barrier mpi(3);
    run(3, [&](Member& member) {
      std::optional<ProgramsRank> rank;
      rank.emplace(member, mpi, [&](bool by_mpi) {
        const bool by_ipc = rank->way.algorithm == &routes::ipc;
        const Algorithm* const by = by_mpi ? &routes::mpi : by_ipc ? &routes::ipc : nullptr;
        return by == winner ? short_time : long_time;
      });
      rank->only_decides = true;
      rank->able = ipc;
      const SmallAllreduce<int32_t> integers(member.rank);
      std::vector<uint32_t> without;
      for (uint32_t i = 0; i < 1200; ++i) {
        if (member.team->goes_without(ipc, integers.call)) without.push_back(i);
        EXPECT_FALSE(member.team->goes_without(nccl, integers.call));
        EXPECT_FALSE(member.team->goes_without({}, integers.call));
        ASSERT_TRUE(rank->make(integers.call));
        if (without.empty() || without.back() != i) continue;
        EXPECT_FALSE(rank->way.takes_part || rank->way.algorithm == &routes::ipc) << "call " << i;
      }
      rank->able = {};
      const SmallAllreduce<double> doubles(member.rank);
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(rank->make(doubles.call));
      ASSERT_EQ(rank->way.of->trial.state(), Trial::State::settled);
      EXPECT_FALSE(member.team->goes_without({}, doubles.call)) << "such calls are on the host";
      EXPECT_FALSE(member.team->goes_without(ipc, doubles.call)) << "it has not been tried";
      if (winner == &routes::ipc) {
        EXPECT_TRUE(without.empty());
        return;
      }
      constexpr uint32_t of_three = 1 + 3 * Trial::turns * Trial::calls_in_turn;
      const uint32_t first = 64 + (winner ? 2 : 1) * of_three + 1;
      const size_t calls = Trial::usual_gap - 1;
      ASSERT_GE(without.size(), calls);
      EXPECT_EQ(without.front(), first);
      EXPECT_EQ(without[calls - 1], first + calls - 1);
      EXPECT_EQ(std::ranges::count(without, first + calls), 0) << "a window is due";
    });
  }
}

TEST_P(TrialsOnDevices, are_off_with_the_rules) {
  change = [](Rank, Process& process) { process.knobs.choice = "rules"; };
  run(2, [&](Member& member) {
    SmallAllreduce<int32_t> integers(member.rank);
    EXPECT_EQ(candidates_of(member, integers.call, {true, true}), "untried nccl");
    EXPECT_NE(candidates_of(member, integers.call, {true, false}), "untried ipc");
    EXPECT_EQ(member.team->say_of(integers.call, Carrier::ipc), Team::Say::if_named);
  });
}

INSTANTIATE_TEST_SUITE_P(Carriers, TrialsOnDevices, ::testing::ValuesIn(trial_carriers),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::testing
