// SPDX-License-Identifier: BSD-3-Clause
//
// The input and the output of a call as elements in the program's memory. Placement (placement.h)
// turns them into the engine's terms: contiguous memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/engine/call.h"
#include "src/memory/devices.h"
#include "src/memory/element_type.h"
#include "src/memory/numbers.h"

namespace sluice {

// Input or output on this rank: blocks of elements of one type.
struct Side {
  const void* buffer = nullptr;
  const ElementType* type = nullptr;  // nullptr: this rank has no such side
  uint32_t blocks = 1;
  size_t count = 0;        // elements of each block
  Numbers counts;          // if set, elements of each block, in place of `count`
  Numbers displacements;   // start of each block in extents; unset: consecutive
  DevicePlace place = {};  // of its data

  size_t elements(uint32_t block) const {
    return counts ? static_cast<size_t>(counts[block]) : count;
  }
  size_t total_elements() const {
    if (!counts) return blocks * count;
    size_t total = 0;
    for (uint32_t i = 0; i < blocks; ++i) total += elements(i);
    return total;
  }
  size_t bytes() const { return total_elements() * type->size; }
  // The start of a block that follows so many elements, in bytes from the buffer.
  ptrdiff_t displacement(uint32_t block, size_t elements_before) const {
    const auto extents =
        displacements ? displacements[block] : static_cast<ptrdiff_t>(elements_before);
    return extents * type->extent;
  }
};

// The first byte of a side whose data is dense.
inline const std::byte* data_of(const Side& side) {
  return offset_by(side.buffer, side.type->start);
}

// A collective call, before Placement.
struct UnplacedCall {
  Call call;  // complete except for its views
  Side input, output;
  // The input lies in the output's memory, and no algorithm works in place (MPI_IN_PLACE in
  // alltoall, alltoallv and reduce_scatter): the input must be copied first.
  bool set_aside = false;
  // The output holds the data before the call, which does not change it (at a broadcast's root).
  bool filled = false;
  // Further buffers on this rank, of the output's type and count: operands of an allreduce in
  // place, and all of them get the result (several_buffers.h). Nobody else knows of them.
  std::span<const Side> others = {};
};

}  // namespace sluice
