// SPDX-License-Identifier: BSD-3-Clause
//
// Internal parts of the model (model.h).
#pragma once

#include <random>
#include <string>
#include <vector>

#include "collectives/model/model.h"

namespace sluice {

inline void add_fault(Faults& faults, std::string fault) {
  if (faults.size() < most_faults) faults.push_back(std::move(fault));
}

inline bool is_message(const Step& step) {
  return step.kind == Kind::send || step.kind == Kind::recv || step.kind == Kind::recv_reduce;
}

// Whether the step is a token: a message without payload, which is sent all the same.
inline bool is_token(const Step& step) {
  return is_message(step) && step.from.count == 0 && step.to.count == 0;
}

// How much of an area exists on a rank: nothing, one whole, or one block for each rank.
enum class Extent : uint8_t { none, whole, blocks };
Extent extent_of(const PlanSet& set, Rank rank, Area area);

// Whether input and output may be the same memory on that rank.
bool may_alias(const PlanSet& set, Rank rank);

// Finds pieces that do not exist and steps that are invalid by themselves.
void check_steps(const PlanSet& set, Faults& faults);

// Finds steps on overlapping memory, at least one of them writing, that are not ordered, and
// pipelined steps whose slices differ. Independent of the number of elements: two parts overlap if
// their fractions do.
void check_memory_order(const PlanSet& set, Faults& faults);

// A rank's memory as one array of elements, for given counts.
class MemoryMap {
 public:
  MemoryMap(const PlanSet& set, Rank rank, const Counts& counts, bool aliased);

  size_t size() const { return size_; }
  size_t scratch() const { return scratch_; }
  // The ranges of an area's blocks, in order; one range if the area has no blocks.
  const std::vector<Range>& blocks(Area area) const { return blocks_[static_cast<int>(area)]; }
  Range resolve(const Piece& piece) const;
  size_t elements(Pieces pieces) const;

 private:
  void add_blocks(const PlanSet& set, Rank rank, const Counts& counts, Area area);

  std::vector<Range> blocks_[3];
  size_t size_ = 0, scratch_ = 0;
};

std::vector<MemoryMap> memory_maps(const PlanSet& set, const Counts& counts, bool aliased);

using Partners = std::vector<std::vector<StepId>>;

// One segment of a step. Both ends of a message run together, as one Unit that names the send.
struct Unit {
  StepAt at;
  uint32_t segment;
};

// How many segments each step has, by rank and step. 0: nothing to do, and nothing to send or
// receive.
using Segments = std::vector<std::vector<uint32_t>>;

// Returns an order in which all units can run: a random one, or, if `random` is null, the order in
// which they become ready. If some cannot run, adds a fault for each message that hangs.
std::vector<Unit> schedule(const PlanSet& set, const Partners& partners, const Segments& segments,
                           std::mt19937_64* random, Faults& faults);

}  // namespace sluice
