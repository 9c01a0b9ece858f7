// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

TEST(Hello, ComesBackAsItWasPacked) {
  Hello hello;
  hello.version = "1.2.3";
  hello.self = {{1, 2}, {std::byte{7}, std::byte{8}}, "pid 1 on host h"};
  hello.current.teams_formed = 9;
  hello.current.hints_size = ~uint32_t{0};
  hello.current.lacks = true;
  hello.current.verdict = Verdict::failed;
  hello.settings_digest = 0x1234567890abcdef;
  hello.choices_digest = 0xfedcba0987654321;
  hello.settings_size = 77;
  hello.strict = false;
  std::byte bytes[Hello::packed_size];
  hello.pack(bytes);
  Hello back;
  ASSERT_TRUE(back.unpack(bytes));
  EXPECT_EQ(back.version, hello.version);
  EXPECT_EQ(back.self.process, hello.self.process);
  EXPECT_EQ(back.self.address, hello.self.address);
  EXPECT_EQ(back.self.label, hello.self.label);
  EXPECT_EQ(back.self.host, "h");
  EXPECT_EQ(back.current.teams_formed, hello.current.teams_formed);
  EXPECT_EQ(back.current.hints_size, hello.current.hints_size);
  EXPECT_TRUE(back.current.lacks);
  EXPECT_EQ(back.current.verdict, Verdict::failed);
  EXPECT_EQ(back.settings_digest, hello.settings_digest);
  EXPECT_EQ(back.choices_digest, hello.choices_digest);
  EXPECT_EQ(back.settings_size, hello.settings_size);
  EXPECT_TRUE(back.able);
  EXPECT_FALSE(back.strict);
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(back.unpack(bytes));
}

// Checks the hellos of three ranks, of which the second sent this one.
Status check_hellos_with(const std::vector<std::byte>& second) {
  std::vector<std::byte> packed(3 * Hello::packed_size);
  for (size_t i = 0; i < 3; ++i) {
    const auto place = std::span(packed).subspan(i * Hello::packed_size, Hello::packed_size);
    Hello().pack(place);
    if (i == 1) std::ranges::copy(second, place.begin());
  }
  return check_hellos(packed);
}

TEST(Hello, WhoSentNoneIsNamed) {
  std::vector<std::byte> hello(Hello::packed_size);
  Hello().pack(hello);
  EXPECT_TRUE(check_hellos_with(hello).ok());
  const struct {
    size_t byte;
    const char* words;
  } cases[] = {{0, "rank 1 runs an incompatible version of Sluice"},
               {7, "rank 1 took part without Sluice: the preload did not reach it"},
               {53, "rank 1 had no memory to set it up"}};
  for (const auto& [byte, words] : cases) {
    auto changed = hello;
    changed[byte] ^= std::byte{1};
    const Status status = check_hellos_with(changed);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
  const Status status = check_hellos_with(std::vector<std::byte>(Hello::packed_size));
  EXPECT_NE(status.message().find(cases[1].words), std::string::npos) << status.message();
}

TEST(Hello, CutsWhatIsTooLong) {
  Hello hello;
  hello.self.label = std::string(500, 'x');
  std::byte bytes[Hello::packed_size];
  hello.pack(bytes);
  Hello back;
  ASSERT_TRUE(back.unpack(bytes));
  EXPECT_EQ(back.self.label, std::string(88, 'x'));
}

TEST(Differences, NameRanksAndValues) {
  const std::string texts[] = {"A=1\nB=2\n", "A=1\nB=3\n", "A=1\nB=2\n", "A=1\nB=2\n"};
  EXPECT_EQ(describe_differences(texts), "B is '2' on ranks 0, 2, 3, '3' on rank 1");
  EXPECT_EQ(describe_differences(std::span(texts, 1)), "");
  const uint32_t ranks[] = {0, 1, 2, 5, 7, 8};
  EXPECT_EQ(describe_ranks(ranks), "ranks 0-2, 5, 7, 8");
}

// The status that each of three ranks got when it formed a team.
std::vector<Status> form(const Adjust& adjust, std::vector<bool>* teams) {
  LoopbackHub hub;
  std::vector<Status> formed(3);
  std::vector<char> have(3);
  on_ranks(
      3, [&](Rank, const ProcessId& id) { return hub.endpoint(id); }, adjust,
      [&](Member& member) {
        formed[member.rank] = member.formed;
        have[member.rank] = member.team != nullptr;
      });
  teams->assign(have.begin(), have.end());
  return formed;
}

TEST(Agreement, TheStrictestRankDecidesWhatADifferenceMeans) {
  for (const bool strict : {true, false}) {
    std::vector<bool> teams;
    const auto formed = form(
        [&](Rank rank, Process& process) {
          process.settings = rank == 2 ? "SLUICE_SEGMENT=64k\n" : "SLUICE_SEGMENT=128k\n";
          process.knobs.on_mismatch = strict && rank == 1 ? "abort" : "mpi";
        },
        &teams);
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_FALSE(teams[rank]);
      EXPECT_EQ(formed[rank].ok(), !strict);
      if (!strict) continue;
      EXPECT_EQ(formed[rank].code(), Code::mismatch);
      EXPECT_NE(
          formed[rank].message().find("SLUICE_SEGMENT is '128k' on ranks 0, 1, '64k' on rank 2"),
          std::string::npos)
          << formed[rank].message();
    }
  }
}

TEST(Agreement, HostsAreNumberedAsTheyCome) {
  std::vector<Hello> hellos(4);
  for (size_t i = 0; i < 4; ++i) hellos[i].host = std::vector<uint64_t>{70, 9, 70, 8}[i];
  EXPECT_EQ(number_hosts(hellos), (std::vector<uint32_t>{0, 1, 0, 2}));
  hellos[2].host = 0;
  EXPECT_TRUE(number_hosts(hellos).empty());
}

TEST(Agreement, VersionsAreCompared) {
  std::vector<bool> teams;
  const auto formed = form(
      [](Rank rank, Process& process) { process.version = rank == 0 ? "0.1.0" : "0.2.0"; }, &teams);
  for (const Status& status : formed) {
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_NE(status.message().find("'0.1.0' on rank 0, '0.2.0' on ranks 1, 2"), std::string::npos)
        << status.message();
  }
}

// A missing resource is not a difference between the ranks, and MPI may not need it.
TEST(Agreement, ARankThatLacksWhatATransportTakesLeavesAllToMpi) {
  for (const bool differs : {false, true}) {
    std::vector<bool> teams;
    const auto formed = form(
        [&](Rank rank, Process& process) {
          if (rank == 2 && differs) process.settings = "SLUICE_SEGMENT=64k\n";
          if (rank != 1) return;
          process.endpoint.reset();
          process.unable = "too few descriptors";
        },
        &teams);
    for (const Status& status : formed) EXPECT_EQ(status.ok(), !differs) << status.message();
    EXPECT_EQ(teams, std::vector<bool>(3, false));
  }
}

TEST(Agreement, ARankWithoutATransportIsNamed) {
  std::vector<bool> teams;
  const auto formed = form(
      [](Rank rank, Process& process) {
        if (rank == 1) process.endpoint.reset();
      },
      &teams);
  for (const Status& status : formed) {
    EXPECT_NE(status.message().find("rank 1 could not set it up, and said why"), std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace sluice::testing
