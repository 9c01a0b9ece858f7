// SPDX-License-Identifier: BSD-3-Clause
//
// Which hints apply, and their effect on a team.
#include "src/engine/hints.h"

#include <gtest/gtest.h>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

TEST(Hints, Keys) {
  EXPECT_TRUE(is_hint("sluice"));
  EXPECT_TRUE(is_hint("sluice_bcast"));
  EXPECT_TRUE(is_hint("sluice_nonsense"));
  EXPECT_FALSE(is_hint("sluices"));
  EXPECT_FALSE(is_hint("mpi_assert_no_any_tag"));
}

TEST(Hints, CommonAreThoseThatAllGaveAlike) {
  const Hints one{{"a", "1"}, {"b", "2"}, {"c", "3"}}, two{{"a", "1"}, {"b", "5"}, {"d", "4"}};
  const std::string texts[] = {to_text(one), to_text(two), to_text(one)};
  std::string differences;
  EXPECT_EQ(common_hints(texts, &differences), (Hints{{"a", "1"}}));
  EXPECT_EQ(differences,
            "b is '2' on ranks 0, 2, '5' on rank 1; c is unset on rank 1, '3' on ranks 0, 2; "
            "d is unset on ranks 0, 2, '4' on rank 1");
  const std::string equal[] = {to_text(two), to_text(two)};
  EXPECT_EQ(common_hints(equal, &differences), two);
  EXPECT_EQ(differences, "");
  const std::string nothing[] = {"", to_text(two)};
  EXPECT_TRUE(common_hints(nothing, &differences).empty());
}

TEST(Hints, Nonsense) {
  const Hints sound{{"sluice", "off"},
                    {"sluice_bcast", "chain"},
                    {"sluice_barrier", "mpi"},
                    {"sluice_reduce", "auto"}};
  Hints hints = sound;
  EXPECT_TRUE(drop_nonsense(&hints).empty());
  hints["sluice_allreduce"] = "chain";
  hints["sluice_brrier"] = "mpi";
  hints["sluice_zzzzzzzzzzzzzzz"] = "on";
  const std::vector<std::string> complaints = drop_nonsense(&hints);
  EXPECT_EQ(hints, sound);
  ASSERT_EQ(complaints.size(), 3U);
  EXPECT_NE(complaints[0].find("allreduce has no algorithm 'chain': there are"), std::string::npos);
  EXPECT_NE(complaints[1].find("did you mean sluice_barrier?"), std::string::npos);
  EXPECT_NE(complaints[2].find("sluice(7) lists those that exist"), std::string::npos);
}

TEST(Hints, Off) {
  for (const char* off : {"off", "0", "No"}) EXPECT_TRUE(asks_for_mpi({{"sluice", off}})) << off;
  EXPECT_FALSE(asks_for_mpi({{"sluice", "on"}}));
  EXPECT_FALSE(asks_for_mpi({{"sluice_bcast", "off"}}));
  EXPECT_FALSE(asks_for_mpi({}));
}

TEST(Hints, Nccl) {
  EXPECT_TRUE(is_hint("sluice_nccl"));
  for (const char* value : {"off", "auto", "on"}) {
    Hints hints{{"sluice_nccl", value}};
    EXPECT_TRUE(drop_nonsense(&hints).empty()) << value;
    EXPECT_EQ(nccl_hint(hints), value);
    EXPECT_FALSE(asks_for_mpi(hints)) << value;
  }
  for (const char* value : {"", "yes", "1", "On", "ring"}) {
    Hints hints{{"sluice_nccl", value}, {"sluice_bcast", "chain"}};
    const std::vector<std::string> complaints = drop_nonsense(&hints);
    ASSERT_EQ(complaints.size(), 1U) << value;
    EXPECT_EQ(complaints[0],
              std::string("sluice_nccl=") + value + " is not accepted: it takes off, auto or on");
    EXPECT_EQ(hints, (Hints{{"sluice_bcast", "chain"}})) << value;
  }
  EXPECT_EQ(nccl_hint({}), "");
  EXPECT_EQ(nccl_hint({{"sluice_bcast", "chain"}}), "");
  Hints misspelt{{"sluice_nccll", "on"}};
  EXPECT_EQ(drop_nonsense(&misspelt),
            (std::vector<std::string>{
                "sluice_nccll is not a hint of Sluice; did you mean sluice_nccl?"}));
}

TEST(Hints, Nonblocking) {
  for (const char* value : {"auto", "off"}) {
    Hints hints{{"sluice_nonblocking", value}};
    EXPECT_TRUE(drop_nonsense(&hints).empty()) << value;
    EXPECT_EQ(leaves_nonblocking(hints), std::string(value) == "off");
  }
  Hints wrong{{"sluice_nonblocking", "on"}};
  EXPECT_EQ(
      drop_nonsense(&wrong),
      (std::vector<std::string>{"sluice_nonblocking=on is not accepted: it takes off or auto"}));
  EXPECT_FALSE(leaves_nonblocking(wrong));
}

TEST(Hints, ChooseTheAlgorithm) {
  Knobs knobs;
  knobs.algorithm[static_cast<size_t>(Collective::broadcast)] = "binomial";
  Selector selector = *Selector::make(knobs);
  const auto chosen = [&] {
    const Situation situation{.collective = Collective::broadcast, .transport = "tcp", .ranks = 4};
    const Algorithm* algorithm = selector.choose(situation, 1000);
    return algorithm ? std::string(algorithm->name) : "mpi";
  };
  apply({{"sluice_bcast", "auto"}}, &selector);
  EXPECT_EQ(chosen(), "binomial");
  apply({{"sluice_bcast", "chain"}}, &selector);
  EXPECT_EQ(chosen(), "chain");
  apply({{"sluice_bcast", "mpi"}}, &selector);
  EXPECT_EQ(chosen(), "mpi");
}

void on_three(const Body& body, const Hinter& hints) {
  LoopbackHub hub;
  on_ranks(
      3, [&hub](Rank, const ProcessId& id) { return hub.endpoint(id); }, {}, body, hints);
}

Call any_call() {
  Call call;
  call.collective = Collective::barrier;
  return call;
}

TEST(Hints, AllAskForMpi) {
  on_three(
      [](Member& member) {
        EXPECT_TRUE(member.formed.ok());
        EXPECT_FALSE(member.team);
      },
      [](Rank) {
        return Hints{{"sluice", "off"}};
      });
}

TEST(Hints, OneAsksForMpi) {
  on_three(
      [](Member& member) {
        ASSERT_TRUE(member.team);
        EXPECT_TRUE(member.hints.empty());
        EXPECT_TRUE(member.team->run(any_call()).ok());
      },
      [](Rank rank) {
        return rank == 2 ? Hints{{"sluice", "off"}} : Hints{};
      });
}

TEST(Hints, RanksThatDifferGiveNoHintOfNccl) {
  const auto on_all = [](const char* first, const char* others, const std::string& wanted) {
    on_three(
        [&](Member& member) {
          ASSERT_TRUE(member.team);
          EXPECT_EQ(nccl_hint(member.hints), wanted);
        },
        [&](Rank rank) {
          return Hints{{"sluice_nccl", rank == 0 ? first : others}};
        });
  };
  on_all("on", "on", "on");
  on_all("on", "auto", "");
  on_all("off", "on", "");
}

TEST(Hints, OneCollectiveIsLeftToMpi) {
  on_three(
      [](Member& member) {
        ASSERT_TRUE(member.team);
        EXPECT_EQ(member.hints, (Hints{{"sluice_barrier", "mpi"}}));
        EXPECT_FALSE(member.team->carries(any_call()));
      },
      [](Rank rank) {
        return Hints{{"sluice_barrier", "mpi"}, {"sluice_bcast", rank == 1 ? "chain" : "binomial"}};
      });
}

}  // namespace
}  // namespace sluice::testing
