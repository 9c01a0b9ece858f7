// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of alltoallv, of whose size the ranks know only their own part: each call says what it
// moves. MPI is faster in all of them.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>

#include "tests/unit/engine/programs_rank.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {
namespace {

// Bytes that a rank sends in a call.
using Weight = std::function<size_t(uint32_t number, Rank rank)>;

// Whether MPI has taken over after two windows.
bool is_handed_over(Member& member, std::barrier<>& mpi, const Weight& weight_of) {
  constexpr uint32_t before = Trial::calls_before_trying;
  ProgramsRank rank(member, mpi, [](bool by_mpi) { return by_mpi ? short_time : long_time; });
  rank.only_decides = true;
  Call call;
  call.collective = Collective::alltoallv;
  for (uint32_t number = 0; number < before + 2 * Trial(2).window_length() + 1; ++number) {
    call.weight = weight_of(number, member.rank);
    if (!rank.make(call)) return false;
  }
  EXPECT_TRUE(rank.way.of);
  return rank.way.by == WayBy::mpi;
}

void expect_handed_over(bool expected, const Weight& weight_of) {
  LoopbackHub hub;
  std::barrier mpi(3);
  on_ranks(
      3, [&](Rank, const ProcessId& id) { return hub.endpoint(id); }, [](Rank, Process&) {},
      [&](Member& member) {
        ASSERT_TRUE(member.team) << member.formed.message();
        EXPECT_EQ(is_handed_over(member, mpi, weight_of), expected) << "rank " << member.rank;
      });
}

TEST(TrialsOfAlltoallv, compare_calls_that_move_as_much) {
  expect_handed_over(true, [](uint32_t, Rank rank) { return size_t{1000} * rank; });
}

// Ranks decide by what all of them send.
TEST(TrialsOfAlltoallv, compare_calls_in_which_ranks_send_much_in_turn) {
  expect_handed_over(
      true, [](uint32_t number, Rank rank) { return number % 3 == rank ? size_t{90000} : 10; });
}

// Only rank 1 knows that calls differ.
TEST(TrialsOfAlltoallv, do_not_compare_calls_of_five_sizes_in_turn) {
  expect_handed_over(false, [](uint32_t number, Rank rank) {
    return rank == 1 ? size_t{1000} << number % 5 : size_t{100};
  });
}

}  // namespace
}  // namespace sluice::testing
