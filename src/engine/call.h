// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine is asked to do: one collective on real memory.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/algorithm.h"
#include "src/reduce/kernel.h"
#include "transports/transport.h"

namespace sluice {

// The way between a view's memory and the program's own, where these are two because elements are
// not dense in the program's. Data goes it piece by piece while others are on the wire.
class Packing {
 public:
  virtual ~Packing() = default;
  // Moves bytes [offset, offset + bytes) from View::base. Can't fail, does not block.
  virtual void move(size_t offset, size_t bytes) = 0;
};

// An area (collectives/plan.h says which blocks each collective has), in elements of Call::element
// bytes.
struct View : Blocks {
  // Fills the memory: called for all bytes before they are read, for some of them more than once.
  Packing* source = nullptr;
  // Takes the results away: called once for bytes that have got their final value, as far as that
  // is known before the end of the call. The rest is the caller's to move when the call is done.
  Packing* sink = nullptr;

  struct Extent {
    size_t offset;  // elements from base
    size_t count;   // elements
  };
  Extent block(uint32_t index) const {
    if (index == whole) return {0, count};
    if (!counts.empty()) return {offsets[index], counts[index]};
    return {index * count, count};
  }
};

struct Call {
  Collective collective = Collective::barrier;
  Rank root = 0;
  size_t element = 1;   // bytes; 1 where nothing is reduced. Equal on all ranks
  Reduction reduction;  // kernel is null where nothing is reduced
  View input, output;   // see plan.h; the same memory where MPI_IN_PLACE allows it
  // What rules look at: the bytes of the whole vector, result or input on one rank (Cost in
  // algorithm.h); equal on all ranks; 0 for alltoallv, where ranks know no common figure.
  size_t bytes = 0;
  bool ragged = false;  // allgatherv and reduce_scatter: blocks differ in size (equal on all ranks)
};

}  // namespace sluice
