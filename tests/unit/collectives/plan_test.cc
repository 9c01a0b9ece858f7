// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/plan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

namespace sluice {

bool operator==(const After& a, const After& b) {
  return a.step == b.step && a.pipelined == b.pipelined;
}
std::ostream& operator<<(std::ostream& out, const After& after) {
  return out << after.step << (after.pipelined ? " pipelined" : " whole");
}

namespace {

constexpr PlanBuilder::Alias in_place{true, whole};
constexpr bool pipelined = true;

Piece input(uint32_t begin = 0, uint32_t end = 1, uint32_t of = 1) {
  return {Area::input, whole, {begin, end, of}};
}
Piece output(uint32_t begin = 0, uint32_t end = 1, uint32_t of = 1) {
  return {Area::output, whole, {begin, end, of}};
}
Piece block(uint32_t index) { return {Area::output, index, {}}; }

std::vector<After> waits(const Plan& plan, StepId step) {
  const auto after = plan.after_of(plan.steps[step]);
  return {after.begin(), after.end()};
}
using Waits = std::vector<After>;

Range range(size_t first, size_t count) { return {first, count}; }
void expect_cut(size_t n, const Part& part, const Range& expected) {
  const Range range = cut(n, part);
  EXPECT_EQ(range.first, expected.first);
  EXPECT_EQ(range.count, expected.count);
}

TEST(Cut, TakesFloors) {
  expect_cut(10, {0, 1, 1}, range(0, 10));
  expect_cut(10, {0, 1, 3}, range(0, 3));
  expect_cut(10, {1, 2, 3}, range(3, 3));
  expect_cut(10, {2, 3, 3}, range(6, 4));
  expect_cut(10, {1, 3, 3}, range(3, 7));
  expect_cut(2, {0, 1, 5}, range(0, 0));
  expect_cut(2, {2, 3, 5}, range(0, 1));
  expect_cut(0, {3, 4, 5}, range(0, 0));
}

TEST(Cut, PartsFollowOneAnother) {
  for (const size_t n : {0u, 1u, 6u, 7u, 8u, 1000u}) {
    for (uint32_t of = 1; of < 20; ++of) {
      size_t next = 0;
      for (uint32_t i = 0; i < of; ++i) {
        const Range part = cut(n, {i, i + 1, of});
        EXPECT_EQ(part.first, next);
        next += part.count;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(Cut, DoesNotOverflow) {
  const size_t n = size_t{1} << 63;
  expect_cut(n, {0, 1, 1}, range(0, n));
  expect_cut(n, {1, 2, 2}, range(n / 2, n / 2));
  const uint32_t of = std::numeric_limits<uint32_t>::max();  // n = 2^31 * of + 2^31
  expect_cut(n, {of - 1, of, of}, range(n - (size_t{1} << 31) - 1, (size_t{1} << 31) + 1));
}

TEST(PlanBuilder, CountsOrdinalsByPeerAndDirection) {
  PlanBuilder builder;
  builder.send(1, input());
  builder.send(2, input());
  builder.recv(1, output());
  builder.send_token(1);
  builder.recv_reduce(1, input(), output(), true);
  builder.send(1, input());
  const Plan plan = std::move(builder).build();
  std::vector<uint32_t> ordinals;
  for (const Step& step : plan.steps) ordinals.push_back(step.ordinal);
  EXPECT_EQ(ordinals, (std::vector<uint32_t>{0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(plan.steps[3].from.count, 0u);
  EXPECT_TRUE(plan.steps[4].received_first);
}

TEST(PlanBuilder, ReadsOfTheSameMemoryDoNotWait) {
  PlanBuilder builder(in_place);
  builder.send(1, input());
  builder.send(2, output());
  builder.send(3, input(1, 2, 3));
  EXPECT_TRUE(std::move(builder).build().after.empty());
}

TEST(PlanBuilder, ReadAfterWriteAfterRead) {
  PlanBuilder builder;
  const StepId first = builder.recv(1, output());
  const StepId reader = builder.send(2, output());
  const StepId second = builder.recv(1, output());
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(waits(plan, reader), (Waits{{first, pipelined}}));
  EXPECT_EQ(waits(plan, second), (Waits{{reader, pipelined}})) << "and so after the first";
}

TEST(PlanBuilder, WriteAfterWrite) {
  PlanBuilder builder;
  const StepId first = builder.recv(1, output());
  const StepId second = builder.recv(1, output(0, 1, 2));
  const StepId third = builder.recv(1, output());
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(waits(plan, second), (Waits{{first, !pipelined}}));
  EXPECT_EQ(waits(plan, third), (Waits{{second, !pipelined}}))
      << "which waited for all of the first";
}

TEST(PlanBuilder, WriteWaitsForEveryReader) {
  PlanBuilder builder;
  const StepId a = builder.send(1, output());
  const StepId b = builder.send(2, output(1, 2, 2));
  const StepId write = builder.recv(3, output());
  EXPECT_EQ(waits(std::move(builder).build(), write), (Waits{{a, pipelined}, {b, !pipelined}}));
}

TEST(PlanBuilder, PartsOverlapAsFractions) {
  PlanBuilder builder;
  const StepId third = builder.recv(1, output(0, 1, 3));
  const StepId rest = builder.recv(2, output(1, 3, 3));
  const StepId same = builder.send(3, output(2, 4, 12));
  const StepId quarter = builder.send(3, output(0, 1, 4));
  const StepId half = builder.send(3, output(1, 2, 2));
  const StepId middle = builder.send(3, output(1, 3, 4));
  const Plan plan = std::move(builder).build();
  EXPECT_TRUE(waits(plan, rest).empty());
  EXPECT_EQ(waits(plan, same), (Waits{{third, !pipelined}}));
  EXPECT_EQ(waits(plan, quarter), (Waits{{third, !pipelined}}));
  EXPECT_EQ(waits(plan, half), (Waits{{rest, !pipelined}}));
  EXPECT_EQ(waits(plan, middle), (Waits{{third, !pipelined}, {rest, !pipelined}}));
}

TEST(PlanBuilder, BlocksAndSlotsAreApart) {
  PlanBuilder builder;
  const Piece scratch = builder.scratch(block(0)), other = builder.scratch(block(0));
  EXPECT_NE(scratch, other);
  builder.recv(1, block(0));
  builder.recv(1, block(1));
  builder.recv(1, scratch);
  builder.recv(1, other);
  const Plan plan = std::move(builder).build();
  EXPECT_TRUE(plan.after.empty());
  EXPECT_EQ(plan.scratch, (std::vector<Piece>{block(0), block(0)}));
}

TEST(PlanBuilder, InputMayBeOutput) {
  PlanBuilder builder(in_place);
  const StepId read = builder.send(1, input(1, 2, 3));
  const StepId apart = builder.recv(1, output(0, 1, 3));
  const StepId same = builder.recv(1, output(1, 2, 3));
  const Plan plan = std::move(builder).build();
  EXPECT_TRUE(waits(plan, apart).empty());
  EXPECT_EQ(waits(plan, same), (Waits{{read, pipelined}}));
}

TEST(PlanBuilder, InputMayBeOneBlockOfOutput) {
  PlanBuilder builder(PlanBuilder::Alias{true, 2});
  const StepId read = builder.send(1, input());
  const StepId other = builder.recv(1, block(1));
  const StepId own = builder.copy(input(), block(2));
  const Plan plan = std::move(builder).build();
  EXPECT_TRUE(waits(plan, other).empty());
  EXPECT_EQ(waits(plan, own), (Waits{{read, pipelined}}));
}

TEST(PlanBuilder, InputIsApartWhereItMustBe) {
  PlanBuilder builder;
  builder.send(1, input());
  builder.recv(1, output());
  EXPECT_TRUE(std::move(builder).build().after.empty());
}

TEST(PlanBuilder, PipelinesSlicesOfSeveralPiecesIfTheyAreTheSame) {
  const Piece both[] = {block(0), block(1)}, swapped[] = {block(1), block(0)};
  PlanBuilder builder;
  const StepId write = builder.recv(1, both);
  const StepId same = builder.send(2, both);
  const StepId turned = builder.send(2, swapped);
  const StepId one = builder.send(2, block(1));
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(waits(plan, same), (Waits{{write, pipelined}}));
  EXPECT_EQ(waits(plan, turned), (Waits{{write, !pipelined}}));
  EXPECT_EQ(waits(plan, one), (Waits{{write, !pipelined}}));
}

TEST(PlanBuilder, PipelinesOnlyIfEverySharedSliceIsTheSame) {
  PlanBuilder builder;
  const Piece scratch = builder.scratch(output());
  const StepId first = builder.copy(output(0, 1, 2), scratch);
  const StepId second = builder.copy(scratch, output(1, 3, 4));
  EXPECT_EQ(waits(std::move(builder).build(), second), (Waits{{first, !pipelined}}));
}

// The chain q -> r -> s orders q and s only segment by segment. But s needs all of q, because it
// writes to memory that q reads in other segments.
TEST(PlanBuilder, KeepsAWholeWaitBesideAPipelinedChain) {
  PlanBuilder builder;
  const Piece scratch = builder.scratch(output(0, 2, 3)), other = builder.scratch(output(0, 2, 3));
  const StepId q = builder.copy(output(0, 2, 3), scratch);
  const StepId r = builder.copy(scratch, other);
  const StepId s = builder.copy(other, output(1, 3, 3));
  EXPECT_EQ(waits(std::move(builder).build(), s), (Waits{{q, !pipelined}, {r, pipelined}}));
}

TEST(PlanBuilder, LeavesOutWhatFollows) {
  PlanBuilder builder;
  const Piece scratch = builder.scratch(output());
  const StepId q = builder.recv(1, output());
  const StepId r = builder.copy(output(), scratch);
  const StepId s = builder.reduce(output(), scratch, output());
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(waits(plan, r), (Waits{{q, pipelined}}));
  EXPECT_EQ(waits(plan, s), (Waits{{r, pipelined}})) << "q -> s follows";
}

TEST(PlanBuilder, OrdersWhatSharesNoMemory) {
  PlanBuilder builder;
  const StepId sent = builder.send(1, output());
  const StepId got = builder.recv_token(1);
  const StepId written = builder.recv(1, output());
  builder.order(got, written);
  builder.order(sent, written);
  EXPECT_EQ(waits(std::move(builder).build(), written),
            (Waits{{sent, !pipelined}, {got, !pipelined}}));
}

TEST(PlanBuilder, FenceIsAJoint) {
  PlanBuilder builder;
  const StepId got = builder.recv(1, block(0));
  const StepId passed_on = builder.send(2, block(0));
  const StepId token = builder.recv_token(3);
  builder.fence();
  const StepId late = builder.send_token(3);
  const StepId overwrites = builder.recv(1, block(0));
  const StepId last = builder.send(2, block(0));
  const Plan plan = std::move(builder).build();
  const StepId joint = token + 1;
  EXPECT_TRUE(plan.steps[joint].is_joint());
  EXPECT_EQ(waits(plan, joint), (Waits{{passed_on, !pipelined}, {token, !pipelined}}));
  EXPECT_EQ(waits(plan, late), (Waits{{joint, !pipelined}}));
  EXPECT_EQ(waits(plan, overwrites), (Waits{{joint, !pipelined}}));
  EXPECT_EQ(waits(plan, last), (Waits{{overwrites, pipelined}}));
  EXPECT_EQ(got, 0u);
}

TEST(PlanBuilder, FencesFollowOneAnother) {
  PlanBuilder builder;
  builder.fence();
  builder.recv_token(1);
  builder.fence();
  builder.fence();
  builder.send_token(1);
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(waits(plan, 1), (Waits{{0, !pipelined}}));
  EXPECT_EQ(waits(plan, 2), (Waits{{1, !pipelined}}));
  EXPECT_EQ(waits(plan, 3), (Waits{{2, !pipelined}}));
  EXPECT_EQ(waits(plan, 4), (Waits{{3, !pipelined}}));
}

// In plans of thousands of ranks, the number of edges must stay proportional to the steps.
TEST(PlanBuilder, StaysLinearForManyRanks) {
  constexpr Rank ranks = 4096;
  PlanBuilder builder(in_place);
  for (Rank i = 0; i + 1 < ranks; ++i) {
    builder.send(1, i == 0 ? input(0, 1, ranks) : output(i, i + 1, ranks));
    builder.recv_reduce(2, input(i + 1, i + 2, ranks), output(i + 1, i + 2, ranks), true);
  }
  builder.send(3, output());
  for (Rank i = 0; i < ranks; ++i) builder.recv_token(3 + i);
  builder.fence();
  for (Rank i = 0; i < ranks; ++i) builder.send_token(3 + i);
  for (Rank i = 0; i < ranks; ++i) builder.recv(3 + i, output(i, i + 1, ranks));
  const Plan plan = std::move(builder).build();
  EXPECT_EQ(plan.steps.size(), 5 * ranks);
  EXPECT_LT(plan.after.size(), 2 * plan.steps.size());
}

}  // namespace
}  // namespace sluice
