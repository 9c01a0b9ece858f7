// SPDX-License-Identifier: BSD-3-Clause
//
// Tests the proof: correct plans are broken in one place, and the proof must find it. Every
// mutation is applied to every step of every rank of every algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model/model.h"

namespace sluice {
namespace {

// The faults of the plans; checks run in the same order as in the proof.
Faults find_faults(const PlanSet& set, const Counts& counts, const Cost& cost) {
  const Model model(set);
  Faults faults = model.faults();
  if (faults.empty()) faults = model.check_lengths(counts);
  if (faults.empty()) faults = model.check_cost(counts, cost);
  for (const bool aliased : {false, true}) {
    if (faults.empty()) faults = model.run(counts, {.aliased = aliased}).faults;
  }
  return faults;
}

bool receives(const Step& step) {
  return step.kind == Kind::recv || step.kind == Kind::recv_reduce;
}
bool has_message(const Step& step) { return receives(step) || step.kind == Kind::send; }

struct Mutation {
  const char* name;
  // Breaks the step. Returns false if this step cannot be broken so.
  std::function<bool(const Algorithm&, Plan&, Step&, Rank self)> apply;
};

bool with_wrong_ordinal(const Algorithm&, Plan&, Step& step, Rank) {
  ++step.ordinal;
  return has_message(step);
}

bool to_itself(const Algorithm&, Plan&, Step& step, Rank self) {
  step.peer = self;
  return has_message(step);
}

bool to_nobody(const Algorithm&, Plan&, Step& step, Rank) {
  step.peer = 1000;
  return has_message(step);
}

bool left_out(const Algorithm&, Plan&, Step& step, Rank) {
  if (!has_message(step)) return false;
  step.kind = Kind::copy;
  step.from = step.with = step.to = {};
  return true;
}

// Drops the last piece.
bool too_short(const Algorithm&, Plan&, Step& step, Rank) {
  Slice& slice = step.kind == Kind::send ? step.from : step.to;
  if (!has_message(step) || slice.count == 0) return false;
  --slice.count;
  return true;
}

// Uses another rank's block, or another part of the same size.
bool of_other_memory(const Algorithm&, Plan& plan, Step& step, Rank) {
  if (step.kind != Kind::send || step.from.count == 0) return false;
  Piece& piece = plan.pieces[step.from.first];
  Part& part = piece.part;
  const uint32_t width = part.end - part.begin;
  if (piece.area != Area::scratch && piece.block != whole) {
    piece.block = piece.block > 0 ? piece.block - 1 : 1;
  } else if (part.end + width <= part.of) {
    part = {part.end, part.end + width, part.of};
  } else if (part.begin >= width) {
    part = {part.begin - width, part.begin, part.of};
  } else {
    return false;
  }
  return true;
}

bool without_contribution(const Algorithm&, Plan&, Step& step, Rank) {
  if (step.kind != Kind::recv_reduce) return false;
  step.kind = Kind::recv;
  step.from = {};
  return true;
}

bool with_double_contribution(const Algorithm&, Plan&, Step& step, Rank) {
  if (step.kind != Kind::recv || step.to.count == 0) return false;
  step.kind = Kind::recv_reduce;
  step.from = step.to;
  return true;
}

bool in_wrong_order(const Algorithm& algorithm, Plan&, Step& step, Rank) {
  if (algorithm.needs.commutative) return false;
  if (step.kind == Kind::reduce) std::swap(step.from, step.with);
  step.received_first = !step.received_first;
  return step.kind == Kind::reduce || step.kind == Kind::recv_reduce;
}

bool pipelined_too_eagerly(const Algorithm&, Plan& plan, Step& step, Rank) {
  for (uint32_t i = 0; i < step.after_count; ++i) {
    After& after = plan.after[step.first_after + i];
    if (after.pipelined) continue;
    after.pipelined = true;
    return true;
  }
  return false;
}

bool waiting_for_the_future(const Algorithm&, Plan& plan, Step& step, Rank) {
  if (step.after_count == 0) return false;
  plan.after[step.first_after].step = static_cast<StepId>(&step - plan.steps.data());
  return true;
}

bool with_input_overwritten(const Algorithm&, Plan& plan, Step& step, Rank) {
  if (step.to.count == 0) return false;
  plan.pieces[step.to.first].area = Area::input;
  return true;
}

bool with_too_much_scratch(const Algorithm& algorithm, Plan& plan, Step& step, Rank self) {
  const bool no_input = algorithm.collective == Collective::broadcast;
  if (algorithm.collective == Collective::barrier || &step != plan.steps.data()) return false;
  const bool blocks = algorithm.collective == Collective::reduce_scatter ||
                      algorithm.collective == Collective::alltoall ||
                      algorithm.collective == Collective::alltoallv;
  const Piece like{no_input ? Area::output : Area::input, blocks ? self : whole, {}};
  plan.scratch.insert(plan.scratch.end(), 50, like);
  return true;
}

const Mutation mutations[] = {
    {"with_wrong_ordinal", with_wrong_ordinal},
    {"to_itself", to_itself},
    {"to_nobody", to_nobody},
    {"left_out", left_out},
    {"too_short", too_short},
    {"of_other_memory", of_other_memory},
    {"without_contribution", without_contribution},
    {"with_double_contribution", with_double_contribution},
    {"in_wrong_order", in_wrong_order},
    {"pipelined_too_eagerly", pipelined_too_eagerly},
    {"waiting_for_the_future", waiting_for_the_future},
    {"with_input_overwritten", with_input_overwritten},
    {"with_too_much_scratch", with_too_much_scratch},
};

// Two hosts, if the algorithm needs hosts.
std::vector<uint32_t> hosts_for(const Algorithm& algorithm, Rank size) {
  std::vector<uint32_t> hosts(algorithm.needs.hosts ? size : 0);
  for (Rank rank = 0; rank < hosts.size(); ++rank) hosts[rank] = 2 * rank >= size;
  return hosts;
}

class Mutants : public testing::TestWithParam<Mutation> {
 protected:
  // Returns the number of mutants.
  size_t expect_all_found(const Algorithm& algorithm, Rank size) {
    const std::vector<uint32_t> hosts = hosts_for(algorithm, size);
    const Shape shape{.size = size, .root = size / 2, .hosts = hosts};
    const PlanSet good = all_plans(algorithm, shape);
    const Cost cost = algorithm.cost(shape);
    const Counts counts{algorithm.collective == Collective::barrier
                            ? 0
                            : std::min<size_t>(Model(good).even_count(), 4 * size)};
    EXPECT_EQ(find_faults(good, counts, cost), Faults{});
    size_t mutants = 0;
    for (Rank rank = 0; rank < size; ++rank) {
      for (StepId id = 0; id < good.plans[rank].steps.size(); ++id) {
        PlanSet bad = good;
        Plan& plan = bad.plans[rank];
        if (!GetParam().apply(algorithm, plan, plan.steps[id], rank)) continue;
        ++mutants;
        EXPECT_NE(find_faults(bad, counts, cost), Faults{})
            << to_string(algorithm.collective) << " " << algorithm.name << ", " << size
            << " ranks: " << describe(good, {rank, id}) << " " << GetParam().name;
        if (HasFailure()) return mutants;
      }
    }
    return mutants;
  }
};

TEST_P(Mutants, AreFound) {
  size_t mutants = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Rank size : {2u, 4u, 5u, 6u}) {
      if (!algorithm.plan) continue;
      if (can_serve(algorithm, size, false, false, hosts_for(algorithm, size))) {
        mutants += expect_all_found(algorithm, size);
      }
    }
  }
  RecordProperty("mutants", std::to_string(mutants));
  EXPECT_GT(mutants, 0u);
}

INSTANTIATE_TEST_SUITE_P(Every, Mutants, testing::ValuesIn(mutations),
                         [](const auto& info) { return std::string(info.param.name); });

// Checks that each edge of these plans is needed: without it, the proof finds a fault.
void expect_all_edges_needed(const Algorithm& algorithm, Rank size) {
  const Shape shape{.size = size};
  const PlanSet good = all_plans(algorithm, shape);
  const Counts counts{algorithm.collective == Collective::barrier ? 0u : 4 * size};
  for (Rank rank = 0; rank < size; ++rank) {
    for (size_t edge = 0; edge < good.plans[rank].after.size(); ++edge) {
      PlanSet bad = good;
      Plan& plan = bad.plans[rank];
      plan.after.erase(plan.after.begin() + static_cast<ptrdiff_t>(edge));
      for (Step& step : plan.steps) {
        if (edge < step.first_after) {
          --step.first_after;
        } else if (edge < step.first_after + step.after_count) {
          --step.after_count;
        }
      }
      EXPECT_NE(find_faults(bad, counts, algorithm.cost(shape)), Faults{})
          << algorithm.name << ", rank " << rank << ", edge " << edge;
    }
  }
}

TEST(MissingEdge, IsFoundInRing) {
  expect_all_edges_needed(*find_algorithm(Collective::allreduce, "ring"), 6);
}

TEST(MissingEdge, IsFoundInRecursiveDoubling) {
  expect_all_edges_needed(*find_algorithm(Collective::allreduce, "recursive_doubling"), 8);
}

// A barrier may have redundant edges, but a barrier without edges is wrong.
TEST(MissingEdge, IsFoundInBarriers) {
  for (const char* name : {"dissemination", "all_to_one"}) {
    PlanSet set = all_plans(*find_algorithm(Collective::barrier, name), {.size = 8});
    EXPECT_EQ(Model(set).faults(), Faults{});
    for (Step& step : set.plans[0].steps) step.after_count = 0;
    EXPECT_NE(Model(set).faults(), Faults{}) << name;
  }
}

}  // namespace
}  // namespace sluice
