// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of teams' trials share.
#pragma once

#include <gtest/gtest.h>

#include "src/engine/team.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/arenas.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {

struct TrialCarrier {
  const char* name;
  bool arena;
  bool two_hosts;
};

// Teams over links or with an arena, on one host or two.
class TrialsRig : public ::testing::TestWithParam<TrialCarrier> {
 protected:
  void run(Rank ranks, const Body& body, const Hinter& hints = {}) {
    const EndpointMaker endpoints = [&](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust adjust = [&](Rank rank, Process& process) {
      change(rank, process);
      process.host = GetParam().two_hosts && rank >= ranks / 2 ? 2 : 1;
      if (GetParam().arena) process.arenas = arenas_.source();
    };
    on_ranks(
        ranks, endpoints, adjust,
        [&](Member& member) {
          ASSERT_TRUE(member.team) << member.formed.message();
          EXPECT_EQ(member.team->spans_hosts(), GetParam().two_hosts);
          body(member);
        },
        hints);
  }

  Adjust change = [](Rank, Process&) {};

 private:
  LoopbackHub hub_;
  ArenaHub arenas_;
};

inline const TrialCarrier trial_carriers[] = {
    {"links", false, false}, {"arena", true, false}, {"two_hosts", false, true}};

}  // namespace sluice::testing
