// SPDX-License-Identifier: BSD-3-Clause
//
// Hand-written plans with one error each; the model must report that error.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model/model.h"

namespace sluice {
namespace {

const Piece input{Area::input, whole, {}};
const Piece output{Area::output, whole, {}};
Piece block(Area area, uint32_t index) { return {area, index, {}}; }
Piece part(Area area, uint32_t begin, uint32_t end, uint32_t of) {
  return {area, whole, {begin, end, of}};
}

// Builds a plan for each rank; the builder knows the aliases of the collective's buffers.
template <typename Write>  // void(Rank, PlanBuilder&)
PlanSet plans(Collective collective, Rank size, Write write) {
  PlanSet set{.collective = collective};
  for (Rank rank = 0; rank < size; ++rank) {
    PlanBuilder plan(alias_of(collective, rank));
    write(rank, plan);
    set.plans.push_back(std::move(plan).build());
  }
  return set;
}

Faults run(const PlanSet& set, const Counts& counts, bool aliased = false) {
  const Model model(set);
  Faults faults = model.faults();
  if (faults.empty()) faults = model.check_lengths(counts);
  if (faults.empty()) faults = model.run(counts, {.aliased = aliased}).faults;
  return faults;
}

void expect_fault(const Faults& faults, const std::string& words) {
  for (const std::string& fault : faults) {
    if (fault.find(words) != std::string::npos) return;
  }
  ADD_FAILURE() << "no fault says \"" << words << "\" among " << testing::PrintToString(faults);
}

// Two ranks exchange their operands. This plan is correct; others here are variations of it.
void exchange(Rank rank, PlanBuilder& plan) {
  const Piece scratch = plan.scratch(input);
  plan.send(1 - rank, input);
  plan.recv(1 - rank, scratch);
  rank == 0 ? plan.reduce(input, scratch, output) : plan.reduce(scratch, input, output);
}

TEST(Broken, NotTheExchangeItself) {
  const PlanSet set = plans(Collective::allreduce, 2, exchange);
  for (const size_t n : {0u, 1u, 7u}) {
    EXPECT_EQ(run(set, {n}), Faults{});
    EXPECT_EQ(run(set, {n}, true), Faults{});
  }
}

TEST(Broken, BothSendFirst) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    const StepId sent = plan.send(1 - rank, input);
    plan.order(sent, plan.recv_reduce(1 - rank, input, output, rank == 1));
  });
  expect_fault(run(set, {1}), "rank 0, step 0 (send to 1, ordinal 0) hangs");
}

// If ranks receive into memory that they are still sending, all wait for each other.
TEST(Broken, ExchangeInPlace) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    plan.send(1 - rank, input);
    plan.recv_reduce(1 - rank, input, output, rank == 1);
  });
  expect_fault(run(set, {1}), "rank 0, step 0 (send to 1, ordinal 0) hangs");
}

TEST(Broken, RingWithOneBuffer) {
  const PlanSet set = plans(Collective::broadcast, 3, [](Rank rank, PlanBuilder& plan) {
    plan.send((rank + 1) % 3, output);
    plan.recv((rank + 2) % 3, output);
  });
  expect_fault(run(set, {1}), "hangs");
}

TEST(Broken, MessageToItself) {
  const PlanSet set = plans(Collective::allreduce, 1, [](Rank, PlanBuilder& plan) {
    plan.send(0, input);
    plan.recv(0, output);
  });
  expect_fault(run(set, {1}), "rank 0, step 0 (send to 0, ordinal 0) is a message to itself");
}

TEST(Broken, PeerOutOfRange) {
  const PlanSet set =
      plans(Collective::allreduce, 2, [](Rank, PlanBuilder& plan) { plan.send(2, input); });
  expect_fault(run(set, {1}), "has a peer out of range");
}

TEST(Broken, NoCounterpart) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    exchange(rank, plan);
    if (rank == 1) plan.send(0, output);
  });
  expect_fault(run(set, {1}), "rank 1, step 3 (send to 0, ordinal 1) has no counterpart");
}

TEST(Broken, WrongOrdinal) {
  PlanSet set = plans(Collective::allreduce, 2, exchange);
  set.plans[0].steps[1].ordinal = 3;
  expect_fault(run(set, {1}), "rank 0, step 1 (recv from 1, ordinal 3) has no counterpart");
}

TEST(Broken, TokenForAPayload) {
  const PlanSet set = plans(Collective::broadcast, 2, [](Rank rank, PlanBuilder& plan) {
    rank == 0 ? plan.send_token(1) : plan.recv(0, output);
  });
  expect_fault(run(set, {1}), "do not agree on whether there is a payload");
}

TEST(Broken, WrongLength) {
  const PlanSet set = plans(Collective::broadcast, 2, [](Rank rank, PlanBuilder& plan) {
    rank == 0 ? plan.send(1, part(Area::output, 0, 1, 2)) : plan.recv(0, output);
  });
  expect_fault(run(set, {8}),
               "rank 0, step 0 (send to 1, ordinal 0) has 4 elements where "
               "rank 1, step 0 (recv from 0, ordinal 0) has 8");
}

TEST(Broken, OperandsOfDifferentLength) {
  const PlanSet set = plans(Collective::allreduce, 1, [](Rank, PlanBuilder& plan) {
    plan.copy(input, plan.scratch(part(Area::input, 0, 1, 2)));
  });
  expect_fault(run(set, {8}), "has 8 elements where rank 0, step 0 (copy) has 4");
}

TEST(Broken, MissingEdge) {
  PlanSet set = plans(Collective::allreduce, 2, exchange);
  Step& reduce = set.plans[0].steps[2];
  ASSERT_EQ(reduce.after_count, 2u) << "on the receive, and on the send of what is overwritten";
  --reduce.after_count;
  expect_fault(run(set, {1}),
               "rank 0, step 2 (reduce) is not ordered after "
               "rank 0, step 1 (recv from 1, ordinal 0), which touches the same");
}

TEST(Broken, AliasesForgotten) {
  PlanSet set{.collective = Collective::allreduce};
  for (Rank rank = 0; rank < 2; ++rank) {
    PlanBuilder plan;
    exchange(rank, plan);
    set.plans.push_back(std::move(plan).build());
  }
  expect_fault(run(set, {1}),
               "rank 0, step 2 (reduce) is not ordered after rank 0, step 0 (send to 1");
}

TEST(Broken, PipelinedThoughSlicesDiffer) {
  const Piece halves[] = {part(Area::output, 0, 1, 2), part(Area::output, 1, 2, 2)};
  PlanSet set = plans(Collective::broadcast, 3, [&](Rank rank, PlanBuilder& plan) {
    if (rank == 0) plan.send(1, output);
    if (rank == 1) plan.recv(0, output);
    for (const Piece& half : halves) {
      if (rank == 1) plan.send(2, half);
      if (rank == 2) plan.recv(1, half);
    }
  });
  EXPECT_EQ(run(set, {9}), Faults{});
  After& after = set.plans[1].after[set.plans[1].steps[2].first_after];
  ASSERT_FALSE(after.pipelined);
  after.pipelined = true;
  expect_fault(run(set, {9}),
               "rank 1, step 2 (send to 2, ordinal 1) is pipelined behind "
               "rank 1, step 0 (recv from 0, ordinal 0)");
}

// A chain of pipelined steps orders its first and last step only segment by segment. That does not
// suffice if the two touch different parts of the same memory.
TEST(Broken, OrderedBySegmentsThoughSlicesDiffer) {
  const Piece first = part(Area::output, 0, 2, 3), second = part(Area::output, 1, 3, 3);
  PlanSet set = plans(Collective::broadcast, 1, [&](Rank, PlanBuilder& plan) {
    const Piece scratch = plan.scratch(first), other = plan.scratch(first);
    plan.copy(first, scratch);
    plan.copy(scratch, other);
    plan.copy(other, second);
  });
  Plan& plan = set.plans[0];
  ASSERT_EQ(plan.after_of(plan.steps[2]).size(), 2u) << "both of the steps before";
  EXPECT_EQ(Model(set).faults(), Faults{});
  ++plan.steps[2].first_after;
  --plan.steps[2].after_count;
  ASSERT_TRUE(plan.after_of(plan.steps[2])[0].pipelined);
  expect_fault(Model(set).faults(),
               "rank 0, step 2 (copy) is not ordered after rank 0, step 0 (copy)");
}

TEST(Broken, ReadsWhatWasNeverWritten) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    plan.send(1 - rank, plan.scratch(input));
    plan.recv_reduce(1 - rank, input, output, rank == 1);
  });
  expect_fault(run(set, {1}), "rank 0, step 0 (send to 1, ordinal 0) reads memory that was never");
}

TEST(Broken, WritesToInput) {
  const PlanSet set = plans(Collective::allreduce, 1, [](Rank, PlanBuilder& plan) {
    plan.copy(input, output);
    plan.copy(output, input);
  });
  expect_fault(run(set, {1}), "rank 0, step 1 (copy) writes to input");
}

TEST(Broken, MemoryThatDoesNotExist) {
  const auto writing_to = [](Collective collective, const Piece& from, const Piece& to) {
    return plans(collective, 2, [&](Rank, PlanBuilder& plan) { plan.copy(from, to); });
  };
  const std::string words = "names memory that does not exist";
  expect_fault(run(writing_to(Collective::reduce, input, output), {1}),
               "rank 1, step 0 (copy) " + words);
  expect_fault(run(writing_to(Collective::broadcast, input, output), {1}), words);
  expect_fault(run(writing_to(Collective::allgather, input, output), {1}), words);
  expect_fault(run(writing_to(Collective::allgather, input, block(Area::output, 2)), {1}), words);
  expect_fault(run(writing_to(Collective::allreduce, input, block(Area::output, 0)), {1}), words);
  expect_fault(run(writing_to(Collective::allreduce, input, block(Area::scratch, 0)), {1}), words);
  expect_fault(run(writing_to(Collective::allreduce, input, part(Area::output, 1, 3, 2)), {1}),
               words);
  expect_fault(run(writing_to(Collective::allreduce, input, part(Area::output, 1, 1, 2)), {1}),
               words);
  expect_fault(run(writing_to(Collective::barrier, input, output), {0}), words);
}

TEST(Broken, WritesTwiceAtOnce) {
  const PlanSet set = plans(Collective::allreduce, 1, [](Rank, PlanBuilder& plan) {
    const Piece from[] = {input, input}, to[] = {output, output};
    plan.copy(from, to);
  });
  expect_fault(run(set, {1}), "writes the same memory twice");
}

TEST(Broken, MovesWithinItself) {
  const PlanSet set = plans(Collective::allreduce, 1, [](Rank, PlanBuilder& plan) {
    plan.copy(input, output);
    plan.copy(part(Area::output, 0, 2, 3), part(Area::output, 1, 3, 3));
  });
  expect_fault(run(set, {3}), "rank 0, step 1 (copy) reads what it overwrites");
}

TEST(Broken, MissingContribution) {
  const PlanSet set = plans(Collective::reduce, 2, [](Rank rank, PlanBuilder& plan) {
    rank == 1 ? plan.send(0, input) : plan.recv(1, output);
  });
  expect_fault(run(set, {1}),
               "rank 0 ends with 1 in element 0 of block 0 of its output: "
               "rank 0 is missing");
}

TEST(Broken, DoubleContribution) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    exchange(rank, plan);
    plan.reduce(output, output, output);
  });
  expect_fault(run(set, {1}), "rank 0 ends with ((0 1) (0 1)) in element 0");
}

TEST(Broken, WrongOrder) {
  const PlanSet set = plans(Collective::reduce, 2, [](Rank rank, PlanBuilder& plan) {
    rank == 1 ? plan.send(0, input) : plan.recv_reduce(1, input, output, true);
  });
  expect_fault(run(set, {1}),
               "rank 0 ends with (1 0) in element 0 of block 0 of its output: "
               "not in the order of ranks");
}

TEST(Broken, AnotherTreeThanTheBalancedOne) {
  PlanSet set = plans(Collective::reduce, 4, [](Rank rank, PlanBuilder& plan) {
    if (rank > 0) return void(plan.send(0, input));
    plan.recv_reduce(1, input, output, false);
    for (const Rank peer : {2u, 3u}) plan.recv_reduce(peer, output, output, false);
  });
  EXPECT_EQ(run(set, {1}), Faults{});
  set.balanced = true;
  expect_fault(run(set, {1}),
               "rank 0 ends with (((0 1) 2) 3) in element 0 of block 0 of its output: "
               "not by the balanced tree");
}

// An algorithm that wrongly claims the balanced tree is found, for some number of ranks.
TEST(Broken, AlgorithmsThatClaimTheBalancedTree) {
  size_t liars = 0;
  for (Algorithm algorithm : algorithms()) {
    if (!algorithm.plan || !is_reducing(algorithm.collective) ||
        algorithm.bracketing == Bracketing::balanced) {
      continue;
    }
    algorithm.bracketing = Bracketing::balanced;
    Faults faults;
    for (Rank size = 2; size <= 9 && faults.empty(); ++size) {
      std::vector<uint32_t> hosts(algorithm.needs.hosts ? size : 0);  // two, if needed
      for (Rank rank = 0; rank < hosts.size(); ++rank) hosts[rank] = 2 * rank >= size;
      if (!can_serve(algorithm, size, false, false, hosts)) continue;
      faults = run(all_plans(algorithm, {.size = size, .hosts = hosts}), {2 * size});
    }
    EXPECT_FALSE(faults.empty()) << to_string(algorithm.collective) << " " << algorithm.name;
    ++liars;
  }
  EXPECT_GT(liars, 5u);
}

TEST(Broken, DifferentExpressionsOnDifferentRanks) {
  PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    const Piece scratch = plan.scratch(input);
    plan.send(1 - rank, input);
    plan.recv(1 - rank, scratch);
    plan.reduce(input, scratch, output);
  });
  set.in_order = false;
  expect_fault(run(set, {1}),
               "rank 1 ends with (1 0) in element 0 of block 0 of its output: "
               "rank 0 has (0 1)");
}

TEST(Broken, DifferentElementsCombined) {
  const PlanSet set = plans(Collective::reduce, 2, [](Rank rank, PlanBuilder& plan) {
    const Piece first = part(Area::input, 0, 1, 2), second = part(Area::input, 1, 2, 2);
    const Piece swapped[] = {second, first};
    rank == 1 ? plan.send(0, swapped) : plan.recv_reduce(1, input, output, false);
  });
  expect_fault(run(set, {2}), "of other elements than 0");
}

TEST(Broken, WrongSource) {
  const PlanSet set = plans(Collective::alltoall, 2, [](Rank rank, PlanBuilder& plan) {
    plan.copy(block(Area::input, rank), block(Area::output, 1 - rank));
    plan.send(1 - rank, block(Area::input, 1 - rank));
    plan.recv(1 - rank, block(Area::output, rank));
  });
  expect_fault(run(set, {1}),
               "rank 0 ends with 1 in element 0 of block 0 of its output: "
               "not from rank 0");
}

TEST(Broken, WrongElementOfTheRightSource) {
  const PlanSet set = plans(Collective::alltoall, 2, [](Rank rank, PlanBuilder& plan) {
    plan.copy(block(Area::input, rank), block(Area::output, rank));
    plan.send(1 - rank, block(Area::input, rank));
    plan.recv(1 - rank, block(Area::output, 1 - rank));
  });
  expect_fault(run(set, {1}),
               "rank 0 ends with 1 in element 0 of block 1 of its output: element 1");
}

// Correct with separate input and output; in place, the sent data was overwritten before.
TEST(Broken, NotInPlace) {
  const PlanSet set = plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    const Piece scratch = plan.scratch(input);
    plan.send(1 - rank, input);
    plan.recv(1 - rank, scratch);
    plan.copy(scratch, output);
    rank == 0 ? plan.reduce(input, scratch, output) : plan.reduce(scratch, input, output);
  });
  EXPECT_EQ(run(set, {1}), Faults{});
  expect_fault(run(set, {1}, true), "rank 0 ends with (1 1)");
}

TEST(Broken, BarrierThatLeaks) {
  const PlanSet set = plans(Collective::barrier, 3, [](Rank rank, PlanBuilder& plan) {
    plan.send_token((rank + 1) % 3);
    plan.recv_token((rank + 2) % 3);
  });
  expect_fault(Model(set).faults(), "rank 0 may leave before rank 1 has come");
}

TEST(Broken, DearerThanItSays) {
  const Model model(plans(Collective::allreduce, 2, [](Rank rank, PlanBuilder& plan) {
    const Piece scratch = plan.scratch(input);
    for (int twice = 0; twice < 2; ++twice) {
      plan.send(1 - rank, input);
      plan.recv(1 - rank, scratch);
    }
  }));
  EXPECT_EQ(model.check_cost({4}, {.steps = 2, .bytes = 2, .scratch = 1}), Faults{});
  expect_fault(model.check_cost({4}, {.steps = 1, .bytes = 2, .scratch = 1}),
               "steps on the critical path: 2");
  expect_fault(model.check_cost({4}, {.steps = 2, .bytes = 1, .scratch = 1}), "rank 0 sends: 8");
  expect_fault(model.check_cost({4}, {.steps = 2, .bytes = 2, .scratch = 0.5}),
               "rank 0 takes scratch: 4");
}

TEST(Broken, CheaperThanItSays) {
  const Model model(plans(Collective::allreduce, 2, exchange));
  EXPECT_EQ(model.check_cost({4}, {.steps = 1, .bytes = 1, .scratch = 1}), Faults{});
  expect_fault(model.check_cost({4}, {.steps = 2, .bytes = 1, .scratch = 1}),
               "steps on the critical path: 1");
  expect_fault(model.check_cost({4}, {.steps = 1, .bytes = 2, .scratch = 1}),
               "no rank sends more than: 4");
}

}  // namespace
}  // namespace sluice
