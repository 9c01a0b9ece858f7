// SPDX-License-Identifier: BSD-3-Clause
//
// What the model reports for correct plans. tests/proof tests that it finds errors.
#include "collectives/model/model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/model/expression.h"

namespace sluice {
namespace {

TEST(Expressions, AreTheSameIfBuiltAlike) {
  Expressions all;
  const Expression a = all.leaf(0, 7), b = all.leaf(1, 7), c = all.leaf(2, 7);
  EXPECT_EQ(all.combine(a, b), all.combine(a, b));
  EXPECT_NE(all.combine(a, b), all.combine(b, a));
  EXPECT_NE(all.combine(all.combine(a, b), c), all.combine(a, all.combine(b, c)));
}

TEST(Expressions, KnowWhomTheyCombine) {
  Expressions all;
  const Expression a = all.leaf(0, 7), b = all.leaf(1, 7), c = all.leaf(2, 7);
  const Expression ordered = all.combine(a, all.combine(b, c));
  EXPECT_TRUE(all.is_in_order(ordered, 3));
  EXPECT_TRUE(all.is_complete(ordered, 3));
  EXPECT_FALSE(all.is_complete(ordered, 4));
  EXPECT_FALSE(all.is_complete(ordered, 2));
  const Expression turned = all.combine(all.combine(c, a), b);
  EXPECT_FALSE(all.is_in_order(turned, 3));
  EXPECT_TRUE(all.is_complete(turned, 3));
  EXPECT_FALSE(all.is_complete(all.combine(all.combine(a, a), b), 3));
  EXPECT_FALSE(all.is_complete(Expressions::nothing, 1));
  EXPECT_EQ(all.to_string(turned), "((2 0) 1)");
  EXPECT_EQ(all.ranks(turned, 9), (std::vector<Rank>{2, 0, 1}));
  EXPECT_EQ(all.ranks(turned, 2), (std::vector<Rank>{2, 0}));
  EXPECT_EQ(all.index(turned), 7u);
  EXPECT_EQ(all.index(all.combine(a, all.leaf(1, 8))), Expressions::mixed);
}

// After many doublings the number of leaves would overflow any counter.
TEST(Expressions, CountNoFurtherThanTheyMust) {
  Expressions all;
  Expression e = all.leaf(0, 0);
  for (int i = 0; i < 100; ++i) e = all.combine(e, e);
  EXPECT_FALSE(all.is_complete(e, 1));
  EXPECT_FALSE(all.to_string(e).empty());
}

// Three ranks forward a buffer, the middle one through scratch. The last answers with a token.
Model chain() {
  PlanSet set{.collective = Collective::broadcast};
  const Piece buffer;
  PlanBuilder first, middle, last;
  first.send(1, buffer);
  first.recv_token(2);
  const Piece scratch = middle.scratch(buffer);
  middle.recv(0, scratch);
  middle.copy(scratch, buffer);
  middle.send(2, buffer);
  const StepId got = last.recv(1, buffer);
  last.order(got, last.send_token(0));
  for (PlanBuilder* builder : {&first, &middle, &last}) {
    set.plans.push_back(std::move(*builder).build());
  }
  return Model(std::move(set));
}

TEST(Model, TimesMessagesAsUnits) {
  const Timeline timeline = chain().timeline({5});
  EXPECT_EQ(timeline.length, 3u);
  EXPECT_EQ(timeline.sent, (std::vector<size_t>{5, 5, 0}));
  EXPECT_EQ(timeline.scratch, (std::vector<size_t>{0, 5, 0}));
  const auto expect_time = [&](Rank rank, StepId step, uint32_t start, uint32_t end, size_t n) {
    const StepTime& time = timeline.steps[rank][step];
    EXPECT_EQ(time.start, start) << rank << " " << step;
    EXPECT_EQ(time.end, end) << rank << " " << step;
    EXPECT_EQ(time.elements, n) << rank << " " << step;
  };
  expect_time(0, 0, 0, 1, 5);
  expect_time(0, 1, 2, 3, 0);
  expect_time(1, 0, 0, 1, 5);
  expect_time(1, 1, 1, 1, 5);
  expect_time(1, 2, 1, 2, 5);
  expect_time(2, 0, 1, 2, 5);
  expect_time(2, 1, 2, 3, 0);
}

TEST(Model, DoesNotSendWhatIsEmpty) {
  const Timeline timeline = chain().timeline({0});
  EXPECT_EQ(timeline.length, 1u) << "the token alone";
  EXPECT_EQ(timeline.sent, (std::vector<size_t>{0, 0, 0}));
}

TEST(Model, YieldsWhatEveryElementHolds) {
  const Model model = chain();
  EXPECT_EQ(model.faults(), Faults{});
  EXPECT_EQ(model.check_lengths({5}), Faults{});
  for (const size_t segment : {0u, 1u, 2u}) {
    const Outcome outcome = model.run({5}, {.segment = segment, .seed = 3});
    EXPECT_EQ(outcome.faults, Faults{});
    for (const auto& blocks : outcome.output) {
      ASSERT_EQ(blocks.size(), 1u);
      ASSERT_EQ(blocks[0].size(), 5u);
      EXPECT_EQ(outcome.expressions.index(blocks[0][3]), 3u);
      EXPECT_EQ(outcome.expressions.rank(blocks[0][3]), 0u);
    }
  }
}

TEST(Model, KnowsHowManyElementsComeOutEven) {
  PlanSet set{.collective = Collective::allreduce};
  PlanBuilder plan(alias_of(Collective::allreduce, 0));
  Piece scratch = plan.scratch({Area::input, whole, {0, 1, 3}});
  plan.copy({Area::input, whole, {0, 1, 4}}, {Area::output, whole, {0, 1, 4}});
  scratch.part = {1, 2, 5};
  plan.send(1, scratch);
  set.plans.push_back(std::move(plan).build());
  set.plans.emplace_back();
  EXPECT_EQ(Model(std::move(set)).even_count(), 60u);
}

}  // namespace
}  // namespace sluice
