// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/rules.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace sluice {
namespace {

TEST(Rules, TheBuiltInOnesParseAndServeEveryCall) {
  const auto selector = Selector::make({});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  for (uint32_t i = 0; i < collective_count; ++i) {
    for (const Rank ranks : {1, 2, 3, 7, 8, 100, 1000}) {
      for (const size_t bytes : {size_t{0}, size_t{1} << 12, size_t{1} << 20, size_t{1} << 40}) {
        for (const bool ordered : {false, true}) {
          for (const bool ragged : {false, true}) {
            const Situation situation{static_cast<Collective>(i), "tcp", ranks, ordered, ragged};
            const Algorithm* algorithm = selector->choose(situation, bytes);
            ASSERT_NE(algorithm, nullptr) << to_string(situation.collective) << " " << ranks;
            EXPECT_TRUE(can_serve(*algorithm, ranks, ordered, ragged));
            EXPECT_EQ(selector->choices(situation).at(bytes), algorithm);
          }
        }
      }
    }
  }
}

TEST(Rules, ServeEveryReductionReproducibly) {
  Knobs knobs;
  knobs.reproducible = true;
  const auto selector = Selector::make(knobs);
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  for (const auto each : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter,
                          Collective::scan, Collective::exscan}) {
    for (Rank ranks = 1; ranks < 130; ++ranks) {
      for (const size_t bytes : {size_t{0}, size_t{1} << 12, size_t{1} << 20, size_t{1} << 40}) {
        for (const bool ordered : {false, true}) {
          const Situation situation{each, "tcp", ranks, ordered, true};
          const Algorithm* algorithm = selector->choose(situation, bytes);
          ASSERT_NE(algorithm, nullptr) << to_string(each) << " " << ranks;
          EXPECT_TRUE(is_balanced(*algorithm, ranks)) << algorithm->name << " " << ranks;
        }
      }
    }
  }
  const Situation situation{Collective::barrier, "tcp", 6};
  EXPECT_EQ(selector->choose(situation, 0), Selector::make({})->choose(situation, 0));
}

TEST(Rules, BoundsAreIncludedAndMayBeLeftOut) {
  const auto rules = parse_rules(
      "# comment\n\nallreduce tcp ranks:2-64 bytes:0-32k -> recursive_doubling # why\n"
      "broadcast * ranks:8- -> binomial\n* * bytes:-1m -> mpi");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ(rules->size(), 3U);
  EXPECT_EQ((*rules)[0].bytes.high, 32U << 10);
  EXPECT_EQ((*rules)[0].ranks.low, 2U);
  EXPECT_EQ((*rules)[1].ranks.low, 8U);
  EXPECT_EQ((*rules)[1].ranks.high, ~size_t{0});
  EXPECT_FALSE((*rules)[2].collective);
  EXPECT_EQ((*rules)[2].bytes.high, 1U << 20);
}

TEST(Rules, LookAtHosts) {
  const std::string path = ::testing::TempDir() + "sluice-hosts-rules-test";
  std::ofstream(path) << "allreduce * hosts:2- per_host:3 -> tree\n"
                         "allreduce * hosts:1 -> ring\n* * hosts:3- -> mpi\n";
  Knobs knobs;
  knobs.rules = path;
  const auto selector = Selector::make(knobs);
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const auto chosen = [&](const std::vector<uint32_t>& hosts) -> std::string {
    const Situation situation{
        .collective = Collective::allreduce, .transport = "tcp", .ranks = 4, .hosts = hosts};
    const Algorithm* algorithm = selector->choose(situation, 1);
    return algorithm ? algorithm->name : "mpi";
  };
  EXPECT_EQ(chosen({0, 0, 0, 1}), "tree");
  EXPECT_EQ(chosen({0, 0, 0, 0}), "ring");
  EXPECT_EQ(chosen({}), "ring");
  EXPECT_EQ(chosen({0, 1, 2, 2}), "mpi");
  EXPECT_NE(chosen({0, 0, 1, 1}), "mpi");
  std::remove(path.c_str());
}

TEST(Rules, LookAtOrderAndUnevenBlocks) {
  const std::string path = ::testing::TempDir() + "sluice-order-rules-test";
  std::ofstream(path) << "reduce_scatter * ordered:1 ragged:1 -> mpi\n"
                         "reduce_scatter * ordered:1 -> direct\n"
                         "reduce_scatter * ordered:0 ragged:1 -> ring\n";
  Knobs knobs;
  knobs.rules = path;
  const auto selector = Selector::make(knobs), plain = Selector::make({});
  std::remove(path.c_str());
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  Situation situation{.collective = Collective::reduce_scatter, .transport = "tcp", .ranks = 4};
  EXPECT_EQ(selector->choose(situation, 1), plain->choose(situation, 1));
  situation.ragged = true;
  EXPECT_STREQ(selector->choose(situation, 1)->name, "ring");
  situation.ordered = true;
  EXPECT_EQ(selector->choose(situation, 1), nullptr);
  situation.ragged = false;
  EXPECT_STREQ(selector->choose(situation, 1)->name, "direct");
  EXPECT_FALSE(parse_rules("* * ordered:yes -> mpi").ok());
  EXPECT_FALSE(parse_rules("* * ragged: -> mpi").ok());
}

// "rules": those that follow decide, and trials do not.
TEST(Rules, MayLeaveTheChoiceToOthers) {
  const std::string path = ::testing::TempDir() + "sluice-decided-rules-test";
  std::ofstream(path) << "allreduce * ordered:0 bytes:4k-8191 -> rules\n"
                         "barrier * -> rules\nbarrier * -> mpi\n";
  Knobs knobs;
  knobs.rules = path;
  const auto selector = Selector::make(knobs), plain = Selector::make({});
  std::remove(path.c_str());
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  Situation situation{.collective = Collective::allreduce, .transport = "tcp", .ranks = 4};
  for (const bool ordered : {false, true}) {
    situation.ordered = ordered;
    const Choices with = selector->choices(situation), without = plain->choices(situation);
    for (const size_t bytes : {size_t{0}, size_t{4095}, size_t{4096}, size_t{8191}, size_t{8192}}) {
      EXPECT_EQ(with.at(bytes), without.at(bytes)) << bytes;
      const bool is_decided = !ordered && bytes >= 4096 && bytes < 8192;
      EXPECT_EQ(with.find(bytes).is_open, !is_decided) << bytes;
      EXPECT_TRUE(without.find(bytes).is_open);
    }
  }
  situation = {.collective = Collective::barrier, .transport = "tcp", .ranks = 4};
  EXPECT_EQ(selector->choose(situation, 0), nullptr);
  EXPECT_FALSE(selector->choices(situation).find(0).is_open);
}

TEST(Rules, LookAtCrowds) {
  const auto selector = Selector::make({});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const auto chosen = [&](Collective collective, Rank ranks, uint32_t per_processor,
                          size_t bytes = 1 << 20) -> std::string {
    const Situation situation{.collective = collective,
                              .transport = "shm",
                              .ranks = ranks,
                              .shm = true,
                              .cma = true,
                              .per_processor = per_processor};
    return selector->choose(situation, bytes)->name;
  };
  using enum Collective;
  struct Row {
    Collective collective;
    const char *alone, *in_turns;  // algorithms of 4 ranks, alone and oversubscribed
  };
  for (const Row& row : {Row{allreduce, "fetch", "split"}, Row{reduce, "split", "flat"},
                         Row{broadcast, "flat", "fetch"}, Row{allgather, "fetch", "flat"},
                         Row{allgatherv, "fetch", "flat"}, Row{reduce_scatter, "fetch", "flat"},
                         Row{alltoall, "fetch", "linear"}, Row{alltoallv, "fetch", "mixed"}}) {
    SCOPED_TRACE(std::string(to_string(row.collective)));
    EXPECT_EQ(chosen(row.collective, 4, 1), row.alone);
    EXPECT_EQ(chosen(row.collective, 4, 2), row.in_turns);
    for (const size_t bytes : {size_t{40} << 10, size_t{1} << 20}) {
      EXPECT_EQ(chosen(row.collective, 2, 2, bytes), chosen(row.collective, 2, 1, bytes)) << "two";
    }
    EXPECT_EQ(chosen(row.collective, 100, 2), chosen(row.collective, 100, 1)) << "many ranks";
  }
  for (const Rank ranks : {5U, 8U, 16U}) {
    EXPECT_EQ(chosen(alltoallv, ranks, 2), "mixed");
    EXPECT_EQ(chosen(alltoall, ranks, 2, 200 << 10), "linear");
    EXPECT_EQ(chosen(alltoall, ranks, 2, 199 << 10), "flat");
  }
  EXPECT_EQ(chosen(alltoall, 4, 2, 100 << 10), "linear");
  EXPECT_EQ(chosen(alltoall, 4, 2, 99 << 10), "flat");
  EXPECT_EQ(chosen(broadcast, 4, 1, 64 << 10), "flat");
  EXPECT_EQ(chosen(broadcast, 4, 2, 64 << 10), "flat");
  EXPECT_TRUE(parse_rules("* * per_processor:2- -> mpi").ok());
  EXPECT_FALSE(parse_rules("* * per_processor:x -> mpi").ok());
}

TEST(Rules, LookAtTheWayBetweenTwoRanks) {
  const auto selector = Selector::make({});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const auto chosen = [&](Collective collective, uint32_t round_trip, size_t bytes) -> std::string {
    const Situation situation{.collective = collective,
                              .transport = "shm",
                              .ranks = 2,
                              .shm = true,
                              .cma = true,
                              .round_trip = round_trip};
    return selector->choose(situation, bytes)->name;
  };
  using enum Collective;
  struct Row {
    Collective collective;
    size_t bytes;
    const char *near, *far, *unknown;
  };
  constexpr size_t kb = 1024;
  for (const Row& row :
       {Row{allreduce, 1, "flat", "flat", "flat"},
        Row{allreduce, 64 * kb, "split", "fetch", "fetch"},
        Row{allreduce, 1024 * kb, "fetch", "fetch", "fetch"},
        Row{reduce, 1, "flat", "flat", "flat"}, Row{reduce, 16 * kb, "flat", "split", "flat"},
        Row{reduce, 1024 * kb, "flat", "fetch", "flat"},
        Row{broadcast, 16 * kb, "flat", "fetch", "flat"},
        Row{broadcast, 64 * kb, "flat", "fetch", "fetch"},
        Row{broadcast, 128 * kb, "fetch", "fetch", "fetch"},
        Row{allgather, 32 * kb, "flat", "fetch", "flat"},
        Row{allgatherv, 64 * kb, "fetch", "fetch", "fetch"},
        Row{allgather, 1024 * kb, "fetch", "fetch", "fetch"},
        Row{reduce_scatter, 80 * kb, "flat", "fetch", "fetch"},
        Row{reduce_scatter, 1024 * kb, "fetch", "fetch", "fetch"},
        Row{alltoall, 8 * kb, "flat", "flat", "flat"},
        Row{alltoall, 32 * kb, "fetch", "fetch", "flat"},
        Row{alltoall, 256 * kb, "fetch", "fetch", "fetch"}}) {
    SCOPED_TRACE(std::string(to_string(row.collective)) + " " + std::to_string(row.bytes));
    for (const uint32_t near : {50, 200})
      EXPECT_EQ(chosen(row.collective, near, row.bytes), row.near);
    for (const uint32_t far : {201, 500})
      EXPECT_EQ(chosen(row.collective, far, row.bytes), row.far);
    // Who shared a processor waited for a switch.
    for (const uint32_t none : {0, 5000}) {
      EXPECT_EQ(chosen(row.collective, none, row.bytes), row.unknown);
    }
  }
}

// The order of operands is kept for any placement, and algorithms for hosts are used.
TEST(Rules, TheBuiltInOnesServeAnyPlacement) {
  const auto selector = Selector::make({});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  for (const std::vector<uint32_t>& hosts :
       {std::vector<uint32_t>{0, 0, 1, 1, 1}, {0, 1, 0, 1, 0}, {0, 1, 2, 3, 4}}) {
    for (uint32_t i = 0; i < collective_count; ++i) {
      for (const size_t bytes : {0, 1 << 12, 1 << 20, 1 << 27}) {
        for (const bool ordered : {false, true}) {
          const Situation situation{.collective = static_cast<Collective>(i),
                                    .transport = "tcp",
                                    .ranks = 5,
                                    .ordered = ordered,
                                    .hosts = hosts};
          const Algorithm* algorithm = selector->choose(situation, bytes);
          ASSERT_NE(algorithm, nullptr);
          EXPECT_TRUE(can_serve(*algorithm, 5, ordered, false, hosts));
        }
      }
    }
  }
  const std::vector<uint32_t> halves{0, 0, 1, 1};
  Situation two{
      .collective = Collective::allreduce, .transport = "tcp", .ranks = 4, .hosts = halves};
  for (const auto each : {Collective::allreduce, Collective::reduce_scatter}) {
    two.collective = each;
    for (const bool ordered : {false, true}) {
      two.ordered = ordered;
      EXPECT_TRUE(selector->choose(two, 16 << 20)->needs.hosts) << to_string(each) << ordered;
    }
  }
}

TEST(Rules, LookAtGroups) {
  const auto selector = Selector::make({});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const std::vector<uint32_t> runs{0, 0, 0, 0, 1, 1, 1, 1}, turns{0, 1, 0, 1, 0, 1, 0, 1};
  const auto chosen = [&](Collective collective, size_t bytes, std::span<const uint32_t> groups,
                          bool ordered) -> std::string {
    const Situation situation{.collective = collective,
                              .transport = "shm",
                              .ranks = 8,
                              .ordered = ordered,
                              .shm = true,
                              .groups = groups};
    const Algorithm* algorithm = selector->choose(situation, bytes);
    return algorithm ? algorithm->name : "mpi";
  };
  for (const auto each : {Collective::allreduce, Collective::reduce, Collective::broadcast,
                          Collective::allgather, Collective::allgatherv, Collective::barrier}) {
    EXPECT_EQ(chosen(each, 8, runs, false), "grouped") << to_string(each);
    EXPECT_EQ(chosen(each, 8, {}, false), "flat") << to_string(each);
    if (each != Collective::barrier) {
      EXPECT_NE(chosen(each, 1 << 20, runs, false), "grouped") << to_string(each);
    }
  }
  EXPECT_EQ(chosen(Collective::allreduce, 8, runs, true), "grouped");
  EXPECT_EQ(chosen(Collective::allreduce, 8, turns, false), "grouped");
  EXPECT_EQ(chosen(Collective::allreduce, 8, turns, true), "flat") << "operands keep their order";
  EXPECT_EQ(chosen(Collective::alltoall, 8, runs, false), "flat");
  EXPECT_TRUE(parse_rules("barrier shm groups:2-4 -> grouped").ok());
}

TEST(Rules, ErrorsNameTheLineAndWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"allreduce tcp -> nonsense", "line 1: allreduce has no algorithm 'nonsense'"},
      {"\nallreduce tcp", "line 2: expected: collective transport"},
      {"sum tcp -> ring", "'sum' is no collective"},
      {"allreduce tls -> ring", "'tls' is no transport: shm, tcp or *"},
      {"allreduce tcp size:0-1 -> ring", "'size:0-1' is no condition"},
      {"allreduce tcp bytes:9-1 -> ring", "'bytes:9-1' is no condition"},
      {"allreduce tcp bytes:- -> ring", "'bytes:-' is no condition"},
      {"allreduce tcp bytes: -> ring", "'bytes:' is no condition"},
      {"* * -> nonsense", "no collective has an algorithm 'nonsense'"},
  };
  for (const auto& [text, message] : wrong) {
    const auto rules = parse_rules(text);
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_NE(rules.status().message().find(message), std::string::npos)
        << rules.status().message();
  }
}

TEST(Selector, AKnobComesBeforeTheFileBeforeTheBuiltInRules) {
  const std::string path = ::testing::TempDir() + "sluice-rules-test";
  std::ofstream(path) << "allreduce * bytes:100-200 -> tree\nbarrier * -> mpi\n";
  Knobs knobs;
  knobs.rules = path;
  knobs.algorithm[static_cast<uint32_t>(Collective::broadcast)] = "chain";
  knobs.algorithm[static_cast<uint32_t>(Collective::reduce)] = "mpi";
  const auto selector = Selector::make(knobs);
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const auto chosen = [&](Collective collective, size_t bytes) -> std::string {
    const Algorithm* algorithm = selector->choose({collective, "tcp", 4}, bytes);
    return algorithm ? algorithm->name : "mpi";
  };
  EXPECT_NE(chosen(Collective::allreduce, 99), "tree");
  EXPECT_EQ(chosen(Collective::allreduce, 100), "tree");
  EXPECT_EQ(chosen(Collective::allreduce, 200), "tree");
  EXPECT_NE(chosen(Collective::allreduce, 201), "tree");
  EXPECT_EQ(chosen(Collective::barrier, 0), "mpi");
  EXPECT_EQ(chosen(Collective::broadcast, 1), "chain");
  EXPECT_EQ(chosen(Collective::reduce, 1), "mpi");
  std::remove(path.c_str());
}

// Trials keep to what the user has decided, and to nothing else.
TEST(Selector, ACallIsOpenWhereTheRulesThatShipDecide) {
  const std::string path = ::testing::TempDir() + "sluice-open-rules-test";
  Knobs knobs;
  const Algorithm* const ships =
      Selector::make(knobs)->choose({Collective::allgather, "tcp", 4}, 150);
  ASSERT_TRUE(ships);
  std::ofstream(path) << "allreduce * bytes:100-200 -> tree\nbarrier * -> mpi\n"
                      << "allgather * bytes:100-200 -> " << ships->name << "\n"
                      << "reduce_scatter * -> ring\n";
  knobs.rules = path;
  knobs.algorithm[static_cast<uint32_t>(Collective::broadcast)] = "chain";
  knobs.algorithm[static_cast<uint32_t>(Collective::alltoall)] = "mpi";
  auto selector = Selector::make(knobs);
  std::remove(path.c_str());
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  const auto is_open = [&](Situation situation, size_t bytes) {
    const Choices choices = selector->choices(situation);
    EXPECT_EQ(choices.at(bytes), selector->choose(situation, bytes));
    return choices.find(bytes).is_open;
  };
  using enum Collective;
  struct Row {
    Collective collective;
    size_t bytes;
    bool is_open;
  };
  for (const Row& row :
       {Row{allreduce, 0, true}, Row{allreduce, 99, true}, Row{allreduce, 100, false},
        Row{allreduce, 200, false}, Row{allreduce, 201, true},
        Row{allreduce, size_t{1} << 40, true}, Row{barrier, 0, false}, Row{broadcast, 1, false},
        Row{alltoall, 1, false}, Row{reduce, 1, true}, Row{allgather, 99, true},
        Row{allgather, 150, false}, Row{allgather, 201, true}, Row{reduce_scatter, 8, false}}) {
    EXPECT_EQ(is_open({row.collective, "tcp", 4}, row.bytes), row.is_open)
        << to_string(row.collective) << " " << row.bytes;
  }
  // What cannot serve is passed over, and the next rule decides.
  EXPECT_TRUE(is_open({reduce_scatter, "tcp", 4, true, false}, 8));
  ASSERT_TRUE(selector->force(reduce, "mpi").ok());
  EXPECT_FALSE(is_open({reduce, "tcp", 4}, 1));
  ASSERT_TRUE(selector->force(reduce, "").ok());
  EXPECT_TRUE(is_open({reduce, "tcp", 4}, 1));
}

TEST(Selector, AnEmptyOneLeavesNothingOpen) {
  const Choices choices = Selector().choices({Collective::allreduce, "tcp", 4});
  EXPECT_EQ(choices.at(8), nullptr);
  EXPECT_FALSE(choices.find(8).is_open);
}

TEST(Selector, AForcedAlgorithmThatCannotServeIsPassedOver) {
  Knobs knobs;
  knobs.algorithm[static_cast<uint32_t>(Collective::allreduce)] = "ring";
  const auto selector = Selector::make(knobs);
  ASSERT_TRUE(selector.ok());
  const Situation ordered{Collective::allreduce, "tcp", 4, true, false};
  EXPECT_EQ(selector->passed_over(ordered), "ring");
  EXPECT_NE(selector->choose(ordered, 8), find_algorithm(Collective::allreduce, "ring"));
  EXPECT_EQ(selector->passed_over({Collective::allreduce, "tcp", 4}), "");
}

TEST(Selector, UnknownNamesAndFilesAreErrors) {
  Knobs knobs;
  knobs.algorithm[static_cast<uint32_t>(Collective::allreduce)] = "rung";
  auto selector = Selector::make(knobs);
  ASSERT_FALSE(selector.ok());
  EXPECT_EQ(selector.status().message().find("SLUICE_ALLREDUCE: allreduce has no algorithm 'rung'"),
            0U)
      << selector.status().message();
  EXPECT_NE(selector.status().message().find("ring"), std::string::npos);
  knobs = {};
  knobs.rules = "/nonexistent/rules";
  selector = Selector::make(knobs);
  ASSERT_FALSE(selector.ok());
  EXPECT_EQ(selector.status().message(),
            "SLUICE_RULES: cannot read /nonexistent/rules: No such file or directory");
  knobs.rules = "/";
  selector = Selector::make(knobs);
  ASSERT_FALSE(selector.ok());
  EXPECT_EQ(selector.status().message(), "SLUICE_RULES: cannot read /: Is a directory");
}

}  // namespace
}  // namespace sluice
