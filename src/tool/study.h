// SPDX-License-Identifier: BSD-3-Clause
//
// One algorithm on one shape, with all that `sluice explain` says of it: every rank's plan, when
// its steps run, and what they cost. Time is counted in messages one after another; copies and
// reductions take none.
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
  size_t bytes = 0;    // S as in Cost: of the vector, of the whole result, of the whole input
  size_t element = 4;  // bytes
};

struct Study {
  const Algorithm* algorithm;
  Shape shape;
  Counts counts;   // one figure: elements of the vector, or of each block
  size_t element;  // bytes
  size_t bytes;    // S; less than was asked for where it does not split into equal blocks
  PlanSet set;
  Timeline timeline;
  Cost published;

  Rank ranks() const { return shape.size; }
  size_t bytes_of(size_t elements) const { return elements * element; }
};

// Errors name the option that makes no sense, and what is there to choose from. A plan that the
// model finds fault with is an error too.
Result<Study> make_study(const StudyOptions& options);

// What a step does, in words: "output{3/8} = input{3/8} + received"; memory as area[block]{part}.
std::string memory_text(const Plan& plan, const Slice& slice);
std::string action_text(const Plan& plan, const Step& step);
std::string_view to_string(Kind kind);

}  // namespace sluice
