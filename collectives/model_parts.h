// SPDX-License-Identifier: BSD-3-Clause
//
// What the model (model.h) is made of.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "collectives/model.h"

namespace sluice {

inline void add_fault(Faults& faults, std::string fault) {
  if (faults.size() < most_faults) faults.push_back(std::move(fault));
}

inline bool is_message(const Step& step) {
  return step.kind == Kind::send || step.kind == Kind::recv || step.kind == Kind::recv_reduce;
}

// Whether the message carries no payload and is sent nevertheless.
inline bool is_token(const Step& step) {
  return is_message(step) && step.from.count == 0 && step.to.count == 0;
}

// What of an area exists on a rank.
enum class Extent : uint8_t { none, whole, blocks };
Extent extent_of(const PlanSet& set, Rank rank, Area area);

// Whether input and output may be the same memory on that rank.
bool may_alias(const PlanSet& set, Rank rank);

// Pieces that do not exist, steps that make no sense by themselves.
void check_steps(const PlanSet& set, Faults& faults);

// Steps on overlapping memory, one of them writing, that are not ordered; pipelined ones whose
// slices differ. Whatever the number of elements: two parts overlap if they do as fractions.
void check_memory_order(const PlanSet& set, Faults& faults);

// A rank's memory as one row of elements, for given counts.
class MemoryMap {
 public:
  MemoryMap(const PlanSet& set, Rank rank, const Counts& counts, bool aliased);

  size_t size() const { return size_; }
  size_t scratch() const { return scratch_; }
  // Where the blocks of an area lie, in order; of one without blocks, the whole.
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

// A part of a step that runs by itself. Of a message both ends run at once, named by the send.
struct Unit {
  StepAt at;
  uint32_t segment;
};

// How many segments a step has. None: nothing to do, no other rank to wait for.
using Segments = std::vector<std::vector<uint32_t>>;

// An order in which all units can run, each as soon as what it waits for is done: a random one, or
// (no `random`) first come first served. If not all of them can, there is a fault for each message
// that hangs.
std::vector<Unit> schedule(const PlanSet& set, const Partners& partners, const Segments& segments,
                           std::mt19937_64* random, Faults& faults);

}  // namespace sluice
