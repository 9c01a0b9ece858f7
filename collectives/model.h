// SPDX-License-Identifier: BSD-3-Clause
//
// A symbolic run of all ranks' plans of one collective, without threads, network or payload. The
// proof (tests/proof) holds every algorithm against it; `sluice explain` prints and draws what it
// finds.
//
//   Model model(all_plans(*find_algorithm(Collective::allreduce, "ring"), {.size = 8}));
//   model.faults();                  // what is wrong with the plans, for any number of elements
//   model.timeline({1000});          // when each step runs, what it moves; costs
//   model.run({1000}, {}).faults;    // what is wrong with the results, for 1000 elements
//
// Messages are a rendezvous: one starts when both its send and its receive have been posted, which
// they are as soon as what they wait for is done. A send that ends only then is the strictest there
// can be: plans that complete so complete under any buffering. As messages are matched statically,
// and memory that two steps touch is ordered, every order of arrival gives the same results.
//
// Faults are sentences for people that name rank and step. At most `most_faults` are kept of a
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/expression.h"

namespace sluice {

using Faults = std::vector<std::string>;
inline constexpr size_t most_faults = 10;

// Every rank's plan of one collective.
struct PlanSet {
  Collective collective = Collective::barrier;
  Rank root = 0;
  bool in_order = true;              // operands are combined in the order of ranks
  bool balanced = false;             // and by the balanced tree (Bracketing)
  std::vector<uint32_t> hosts = {};  // as in Shape
  std::vector<Plan> plans = {};

  Rank size() const { return static_cast<Rank>(plans.size()); }
};

// Those of an algorithm; shape.rank is not looked at.
PlanSet all_plans(const Algorithm& algorithm, Shape shape);

// A step of a rank, and in words: "rank 3, step 5 (recv_reduce from 2, ordinal 1)".
struct StepAt {
  Rank rank;
  StepId step;
};
std::string describe(const PlanSet& set, const StepAt& at);

// Elements: one figure (of the vector, or of each block), or one for each block, or (alltoallv) one
// for each pair: from rank a to rank b at a * size + b.
using Counts = std::vector<size_t>;

// When steps run, whole, in units of one message each: a message starts when both its send and its
// receive are posted. (So operands that a rank adds to one accumulator are taken one after another,
// while any number that go to memory of their own are taken at once.) Copies and reductions take no
// time; messages that come out empty are not sent.
struct StepTime {
  uint32_t start = 0, end = 0;
  size_t elements = 0;  // of the message or operand
};
struct Timeline {
  std::vector<std::vector<StepTime>> steps;  // by rank and step
  uint32_t length = 0;                       // messages one after another on the critical path
  std::vector<size_t> sent;                  // elements sent, by rank
  std::vector<size_t> between;               // and to other hosts, by host; where hosts are known
  std::vector<size_t> scratch;               // elements of scratch, by rank
};

struct RunOptions {
  bool aliased = false;  // input and output are the same memory, where the collective allows it
  // If not 0: in segments of so many elements, in a random order (of this seed) of all that may
  // run.
  size_t segment = 0;
  uint64_t seed = 0;
};

struct Outcome {
  Expressions expressions;
  // By rank, block (or the whole as the only one) and element; no blocks where there is no output.
  std::vector<std::vector<std::vector<Expression>>> output;
  Faults faults;
};

class Model {
 public:
  explicit Model(PlanSet set);

  const PlanSet& set() const { return set_; }

  // What is wrong for any number of elements: pieces that do not exist, writes to input, peers out
  // of range and messages to oneself; messages without their counterpart; deadlock; a barrier that
  // lets a rank leave before all have come; steps on overlapping memory that are not ordered, or
  // pipelined though their slices differ. The rest is called only if there is nothing.
  const Faults& faults() const { return faults_; }

  // Messages and operands whose lengths differ.
  Faults check_lengths(const Counts& counts) const;

  Timeline timeline(const Counts& counts) const;

  // Steps, elements sent and scratch against what the algorithm says. Steps and elements are to be
  // met exactly where all blocks are equal and all parts come out even, unless the cost says that
  // it is a bound; else they are bounds, as scratch always is.
  Faults check_cost(const Counts& counts, const Cost& cost) const;

  // The least number of elements with which all parts come out even.
  size_t even_count() const;

  // Runs, and judges the results: each element holds each rank's contribution once, in order and by
  // the balanced tree if the set says so, the same expression on all ranks of an allreduce; or the
  // right rank's element; and nothing is read that was never written. Lengths must agree.
  Outcome run(const Counts& counts, const RunOptions& options) const;

 private:
  PlanSet set_;
  std::vector<std::vector<StepId>> partners_;  // by rank and step: a message's other end
  std::vector<StepAt> sequence_;  // an order in which all can run; of messages the send alone
  Faults faults_;
};

}  // namespace sluice
