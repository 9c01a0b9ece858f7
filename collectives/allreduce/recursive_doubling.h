// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce by recursive doubling: in round i, ranks that differ in bit i exchange their partial
// results, and both combine them. Ranks beyond a power of two fold into a neighbour first (Fold),
// and receive the result from it at the end. The fastest for small messages.
//
// Cost (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
// MPICH, IJHPCA 19, 2005): log2 p steps; each rank sends log2 p x S. If p is not a power of two,
// with k = floor(log2 p): k+2 steps and (k+1) x S.
// Order: kept.
// Scratch: S.
#pragma once

#include "collectives/algorithm.h"
#include "collectives/patterns/fold.h"

namespace sluice {

// The steps of one of two ranks or more. Other algorithms use it to combine partial results.
class RecursiveDoubling {
 public:
  RecursiveDoubling(PlanBuilder& plan, Rank rank, Rank size);

  // Where the caller must put such a partial result before run(): output or scratch.
  Piece place() const;
  // Adds the steps. mine: this rank's operand, in input or place(). The result is in output.
  void run(Piece mine);

 private:
  PlanBuilder& plan_;
  const Rank rank_;
  const Fold fold_;
  Piece scratch_;
  uint32_t exchanges_;  // still to come
};

}  // namespace sluice
