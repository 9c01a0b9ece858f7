// SPDX-License-Identifier: BSD-3-Clause
//
// Runs all ranks' plans of one collective symbolically, without threads, network or payload. The
// proof (tests/proof) checks every algorithm with it; `sluice explain` prints and draws the run.
//
//   Model model(all_plans(*find_algorithm(Collective::allreduce, "ring"), {.size = 8}));
//   model.faults();                  // what is wrong with the plans, for any number of elements
//   model.timeline({1000});          // when each step runs, what it moves; costs
//   model.run({1000}, {}).faults;    // what is wrong with the results, for 1000 elements
//
// Messages are modelled as rendezvous: a message starts when both its send and its receive have
// been posted, and each is posted as soon as the steps that it waits for are done. No real send
// blocks longer than that, so plans that complete here complete under any buffering. Messages are
// matched statically, and steps that touch the same memory are ordered, so every order of arrival
// gives the same results.
//
// Faults are sentences that name rank and step. A list holds at most `most_faults`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model/expression.h"

namespace sluice {

using Faults = std::vector<std::string>;
inline constexpr size_t most_faults = 10;

// Every rank's plan of one collective.
struct PlanSet {
  Collective collective = Collective::barrier;
  Rank root = 0;
  bool in_order = true;              // operands must be combined in rank order
  bool balanced = false;             // and by the balanced tree (Bracketing)
  std::vector<uint32_t> hosts = {};  // as in Shape
  std::vector<Plan> plans = {};

  Rank size() const { return static_cast<Rank>(plans.size()); }
};

// The plans of an algorithm. shape.rank is ignored.
PlanSet all_plans(const Algorithm& algorithm, Shape shape);

// A step of a rank. describe() returns "rank 3, step 5 (recv_reduce from 2, ordinal 1)".
struct StepAt {
  Rank rank;
  StepId step;
};
std::string describe(const PlanSet& set, const StepAt& at);

// Element counts: one (of the vector, or of every block), or one for each block, or (alltoallv) one
// for each pair of ranks: from rank a to rank b at a * size + b.
using Counts = std::vector<size_t>;

// When steps run. Steps are not cut into segments, and each message takes one unit of time. It
// starts when both its send and its receive are posted. (So operands that a rank adds to one
// accumulator come one after another, while any number that go to separate memory come at once.)
// Copies and reductions take no time. Empty messages are not sent.
struct StepTime {
  uint32_t start = 0, end = 0;
  size_t elements = 0;  // of the message or operand
};
struct Timeline {
  std::vector<std::vector<StepTime>> steps;  // by rank and step
  uint32_t length = 0;                       // messages in sequence on the critical path
  std::vector<size_t> sent;                  // elements sent, by rank
  std::vector<size_t> between;               // of these, to other hosts, by host; empty if unknown
  std::vector<size_t> scratch;               // elements of scratch, by rank
};

struct RunOptions {
  bool aliased = false;  // input and output are the same memory, if the collective allows it
  // If not 0: cuts steps into segments of so many elements, and runs those that are ready in a
  // random order (from `seed`).
  size_t segment = 0;
  uint64_t seed = 0;
};

struct Outcome {
  Expressions expressions;
  // By rank, block and element. An undivided output counts as one block; without output there are
  // none.
  std::vector<std::vector<std::vector<Expression>>> output;
  Faults faults;
};

class Model {
 public:
  explicit Model(PlanSet set);

  const PlanSet& set() const { return set_; }

  // Faults that do not depend on the number of elements: pieces that do not exist, writes to input,
  // peers out of range, messages to oneself; messages without a counterpart; deadlock; a barrier
  // that a rank may leave before all have entered; steps on overlapping memory that are not
  // ordered, or that are pipelined though their slices differ. Call the other functions only if
  // there are none.
  const Faults& faults() const { return faults_; }

  // Faults: messages and operands whose lengths differ.
  Faults check_lengths(const Counts& counts) const;

  Timeline timeline(const Counts& counts) const;

  // Compares steps, elements sent and scratch with the published cost. If all blocks are equal and
  // all parts divide evenly, steps and elements must match exactly, unless the cost is a bound
  // (at_most). Otherwise the cost is an upper bound; for scratch it always is.
  Faults check_cost(const Counts& counts, const Cost& cost) const;

  // A number of elements that all parts divide evenly.
  size_t even_count() const;

  // Runs the plans and checks the results. After a reduction, each element must combine each rank's
  // contribution once, in order and by the balanced tree if the set says so, and in an allreduce
  // all ranks must have the same expression. After other collectives, each element must be the
  // right rank's. No step may read memory that was never written. check_lengths must have found no
  // fault.
  Outcome run(const Counts& counts, const RunOptions& options) const;

 private:
  PlanSet set_;
  std::vector<std::vector<StepId>> partners_;  // by rank and step: the other end of a message
  std::vector<StepAt> sequence_;  // an order in which all can run; messages only as sends
  Faults faults_;
};

}  // namespace sluice
