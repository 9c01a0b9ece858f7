// SPDX-License-Identifier: BSD-3-Clause
//
// What a communicator does about its votes on NCCL.
#include "src/nccl/stages.h"

#include <gtest/gtest.h>

namespace sluice::testing {
namespace {

using Next = Finding::Next;
using Action = NcclStages::Action;
using Stage = NcclStages::Stage;

constexpr Finding is_able{Next::go, Lack::nothing, 0, true, true},
    is_new{Next::start, Lack::not_started, 0, true, false},
    is_late{Next::stay, Lack::starting, 1, true, false},
    is_host{Next::stay, Lack::on_host, 0, false, true},
    is_mixed{Next::go, Lack::nothing, 0, false, true},
    is_dead{Next::never, Lack::failed, 1, true, true};

TEST(NcclStages, start_after_two_votes_and_run_when_all_are_ready) {
  NcclStages stages;
  EXPECT_EQ(stages.learn(is_new), Action::carry_on);
  EXPECT_EQ(stages.learn(is_host), Action::carry_on);
  EXPECT_EQ(stages.learn(is_new), Action::carry_on);
  EXPECT_EQ(stages.learn(is_new), Action::start);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(stages.learn(is_late), Action::carry_on);
  EXPECT_EQ(stages.stage(), Stage::starting);
  EXPECT_EQ(stages.learn(is_able), Action::run);
  EXPECT_EQ(stages.stage(), Stage::ready);
  EXPECT_EQ(stages.learn(is_mixed), Action::run);
}

// NCCL takes memory.
TEST(NcclStages, start_only_if_all_data_is_on_devices) {
  NcclStages stages;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stages.learn(is_mixed), Action::carry_on);
  EXPECT_EQ(stages.stage(), Stage::watching);
}

// One that another communicator of these processes has begun.
TEST(NcclStages, join_a_group) {
  for (const Finding& finding : {is_able, is_late}) {
    NcclStages stages;
    EXPECT_EQ(stages.learn(finding), Action::carry_on);
    EXPECT_EQ(stages.learn(finding), Action::start);
    EXPECT_EQ(stages.learn(is_able), Action::run);
  }
}

TEST(NcclStages, go_back_after_many_refusals_in_a_row) {
  NcclStages stages;
  for (int i = 0; i < 3; ++i) (void)stages.learn(is_able);
  ASSERT_EQ(stages.stage(), Stage::ready);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 1; i < NcclStages::most_refusals; ++i) {
      EXPECT_EQ(stages.learn(is_host), Action::carry_on);
    }
    EXPECT_EQ(stages.stage(), Stage::ready);
    EXPECT_EQ(stages.learn(is_able), Action::run);
  }
  for (uint32_t i = 0; i < NcclStages::most_refusals; ++i) (void)stages.learn(is_host);
  EXPECT_EQ(stages.stage(), Stage::watching);
}

TEST(NcclStages, end_with_a_failure) {
  for (int before = 0; before < 5; ++before) {
    NcclStages stages;
    for (int i = 0; i < before; ++i) (void)stages.learn(is_able);
    EXPECT_EQ(stages.learn(is_dead), Action::give_up);
    EXPECT_EQ(stages.stage(), Stage::failed);
    EXPECT_EQ(stages.learn(is_able), Action::carry_on);
  }
}

}  // namespace
}  // namespace sluice::testing
