// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoallv between hosts: short blocks in cells that other ranks forward, long ones directly.
#include "src/engine/alltoallv.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/blocks.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

const Algorithm& hosts = *find_algorithm(Collective::alltoallv, "hosts");
const size_t room = PaddedAlltoallv::room(hosts.cell);

class Padded : public ::testing::Test {
 protected:
  // placement: the host of each rank.
  void run(const std::vector<uint32_t>& placement, const Body& body) {
    const EndpointMaker endpoints = [this](Rank, const ProcessId& id) { return hub_.endpoint(id); };
    const Adjust place = [&](Rank rank, Process& process) {
      process.host = 1 + placement[rank];
      process.knobs.algorithm[static_cast<size_t>(Collective::alltoallv)] = hosts.name;
    };
    on_ranks(static_cast<Rank>(placement.size()), endpoints, place, body);
  }
  // The number of messages of `calls` calls in a new team; size(call, from, to) returns bytes.
  template <typename Size>
  uint64_t messages_of(uint32_t calls, const Size& size) {
    const uint64_t before = hub_.messages();
    run({0, 0, 1, 1}, [&](Member& member) {
      for (uint32_t call = 0; call < calls; ++call) {
        exchange(member, [&](Rank from, Rank to) { return size(call, from, to); });
      }
    });
    return hub_.messages() - before;
  }

  LoopbackHub hub_;
};

TEST_F(Padded, BlocksOfAllSizesArrive) {
  const std::array<size_t, 9> sizes{0, 1, 100, room - 1, room, room + 1, 5000, 300'000, 7};
  const std::vector<uint32_t> placements[] = {
      {0, 0, 1, 1}, {0, 1, 0}, {0, 1, 1, 2, 0, 0, 1}, {0, 0, 0, 1}};
  for (const auto& placement : placements) {
    run(placement, [&](Member& member) {
      for (uint32_t round = 0; round < sweep(20U, 20U, 6U); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        exchange(member, [&](Rank from, Rank to) {
          return sizes[(round + from * (round / 3) + to) % sizes.size()];
        });
        ASSERT_FALSE(::testing::Test::HasFatalFailure());
      }
    });
  }
}

TEST_F(Padded, OnlyWhatIsLongGoesByItself) {
  const auto messages = [this](size_t from_0_to_3) {
    return messages_of(1, [&](uint32_t, Rank from, Rank to) {
      return from == 0 && to == 3 ? from_0_to_3 : size_t{10};
    });
  };
  const uint64_t all_short = messages(room);
  EXPECT_EQ(messages(0), all_short);
  EXPECT_EQ(messages(room + 1), all_short + 1);
}

// All ranks learn how much the cells held, and stop using cells together.
TEST_F(Padded, AreLeftOutForAWhileWhereTheyCarriedLittle) {
  constexpr uint32_t straight = 4 * 3, without = 31;
  const auto first_long = [](uint32_t call, Rank, Rank) {
    return call == 0 ? room + 1 : size_t{1};
  };
  const auto few = [](uint32_t, Rank from, Rank to) { return size_t{to == (from + 1) % 4}; };
  const auto all = [](uint32_t, Rank, Rank) { return size_t{1}; };
  const auto none = [](uint32_t, Rank, Rank) { return size_t{0}; };
  const uint64_t in_cells = messages_of(1, none);
  EXPECT_EQ(messages_of(3, all), 3 * in_cells);
  EXPECT_EQ(messages_of(1 + without, none), in_cells);
  EXPECT_EQ(messages_of(1, first_long), in_cells + straight);
  EXPECT_EQ(messages_of(1 + without, first_long), in_cells + straight + without * straight);
  EXPECT_EQ(messages_of(3 + without, first_long), 3 * in_cells + straight + without * straight);
  // Each time for longer. (4 blocks, each sent directly.)
  constexpr uint32_t calls = 1 + without + 1 + (2 * without + 1);
  EXPECT_EQ(messages_of(calls, few), 2 * in_cells + (calls - 2) * 4);
  EXPECT_EQ(messages_of(calls + 1, few), 3 * in_cells + (calls - 2) * 4);
}

TEST_F(Padded, RanksThatDisagreeAboutABlockAreToldSo) {
  for (const auto& [sent, expected] :
       {std::pair(size_t{10}, size_t{11}), std::pair(size_t{10}, size_t{100'000}),
        std::pair(size_t{100'000}, size_t{10}), std::pair(size_t{100'000}, size_t{200'000})}) {
    std::vector<std::string> messages(4);
    run({0, 0, 1, 1}, [&](Member& member) {
      const auto size = [](size_t of_two) {
        return [of_two](Rank from, Rank to) { return from == 0 && to == 3 ? of_two : 20; };
      };
      Blocks input = blocks_from(member, size(sent)), output = blocks_for(member, size(expected));
      messages[member.rank] = member.team->run(call_on(input, output)).message();
    });
    SCOPED_TRACE(std::to_string(sent) + " and " + std::to_string(expected));
    EXPECT_NE(messages[3].find("rank 0"), std::string::npos) << messages[3];
    EXPECT_NE(messages[3].find("it sends " + std::to_string(sent)), std::string::npos)
        << messages[3];
    EXPECT_NE(messages[3].find("call 1 on"), std::string::npos) << messages[3];
  }
}

// Messages of both parts have call numbers of their own, but errors count the program's calls.
TEST_F(Padded, CallsAreCountedOnce) {
  run({0, 0, 1}, [&](Member& member) {
    for (int i = 0; i < 4; ++i) exchange(member, [](Rank, Rank) { return size_t{10}; });
    const auto size = [](size_t of_two) {
      return [of_two](Rank from, Rank to) { return from == 0 && to == 2 ? of_two : 20; };
    };
    Blocks input = blocks_from(member, size(30)), output = blocks_for(member, size(40));
    const std::string message = member.team->run(call_on(input, output)).message();
    if (member.rank == 2) {
      EXPECT_NE(message.find("call 5 on"), std::string::npos) << message;
    }
  });
}

}  // namespace
}  // namespace sluice::testing
