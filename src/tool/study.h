// SPDX-License-Identifier: BSD-3-Clause
//
// One algorithm on one shape, and all that `sluice explain` prints of it: each rank's plan, the
// time of its steps, and their costs. The unit of time is one message; copies and reductions take
// no time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/model/model.h"
#include "src/base/status.h"

namespace sluice {

struct StudyOptions {
  std::string collective, algorithm;
  Rank ranks = 0;
  std::optional<Rank> root;
  uint32_t radix = 2;
  std::vector<uint32_t> hosts;  // as in Shape
  size_t bytes = 0;             // S as in Cost: of the vector, the whole result, the whole input
  size_t element = 4;           // bytes
};

struct Study {
  const Algorithm* algorithm;
  Shape shape;
  Counts counts;   // one entry: elements of the vector, or of each block
  size_t element;  // bytes
  size_t bytes;    // S; less than requested if it does not divide into equal blocks
  PlanSet set;
  Timeline timeline;
  Cost published;

  Rank ranks() const { return shape.size; }
  size_t bytes_of(size_t elements) const { return elements * element; }
};

// All collectives, with commas.
std::string collective_names();

// An error names the wrong option and the valid choices. A plan in which the model finds a fault is
// also an error.
Result<Study> make_study(const StudyOptions& options);

// A step in words: "output{3/8} = input{3/8} + received"; memory as area[block]{part}.
std::string memory_text(const Plan& plan, const Slice& slice);
std::string action_text(const Plan& plan, const Step& step);
std::string_view to_string(Kind kind);

}  // namespace sluice
