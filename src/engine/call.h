// SPDX-License-Identifier: BSD-3-Clause
//
// A request to the engine: one collective call on real memory.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/algorithm.h"
#include "src/base/status.h"
#include "src/reduce/kernel.h"
#include "transports/transport.h"

namespace sluice {

class DeviceWork;

// Copies data between a view's memory and the program's buffer, if these differ because elements
// are not dense in the buffer, or lie on a device. Data is copied piece by piece, while other
// pieces are on the wire. Whether a call needs this differs between ranks and calls, so no choice
// of an algorithm depends on it, and the bytes on the wire are the same.
class Packing {
 public:
  virtual ~Packing() = default;
  // Copies bytes [offset, offset + bytes), counted from View::base. Does not wait for other ranks.
  virtual void move(size_t offset, size_t bytes) = 0;
  // The first failure, after which nothing is copied. (The processor's own copies can't fail.)
  virtual Status failure() const { return {}; }
};

// The memory of an area, in elements of Call::element bytes. Without a Call::device the processor
// may touch it. collectives/plan.h lists each collective's areas and blocks.
struct View : Blocks {
  // Packs the program's data into this memory. Called for all bytes before they are read, for some
  // of them more than once.
  Packing* source = nullptr;
  // Unpacks results from this memory. Called once for bytes that have their final value, as far as
  // that is known before the end of the call. The caller unpacks the rest after the call.
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
  // What a message says of its call in 32 bits (encode_signature): the collective, and the root.
  static constexpr uint32_t collective_bits = 6;
  static_assert(collective_count <= 1U << collective_bits);
  // In exchanges of a team's own (Team::exchange): the root is this number and the collective that
  // the exchange precedes. No call of the program's has such a root.
  static constexpr Rank exchange_root =
      (Rank{1} << (32 - collective_bits)) - (Rank{1} << collective_bits);

  Collective collective = Collective::barrier;
  Rank root = 0;
  size_t element = 1;   // bytes; 1 if nothing is reduced. Equal on all ranks
  Reduction reduction;  // kernel is null if nothing is reduced
  View input, output;   // see plan.h; the same memory where MPI_IN_PLACE allows it
  // The size that rules test: bytes of the whole vector, result or input on one rank (Cost in
  // algorithm.h). Equal on all ranks; 0 where ranks know no common figure (has_common_size).
  size_t bytes = 0;
  // Where there is no common size: bytes that this rank sends, or in scatterv gets. Ranks differ:
  // trials exchange it (samples.h), and nothing else depends on it.
  size_t weight = 0;
  // If set, both views lie on this device, and have no Packing. Then the algorithm must have a
  // plan.
  DeviceWork* device = nullptr;
  bool ragged = false;  // allgatherv and reduce_scatter: blocks differ in size (equal on all ranks)
  // MPI is never tried (trials.h): an alltoall or alltoallv in place, which all ranks of an MPI
  // library must make so (equal on all ranks).
  bool stays = false;
};

inline bool scatters(const Call& call) {
  return call.collective == Collective::scatter || call.collective == Collective::scatterv;
}

// Whether the result has the same bits for every order of operands and every implementation: data
// is moved, or wide integers are reduced. (Not of max: of 0 and -0, and if there are NaNs. Truth
// has several representations in Fortran. Open MPI 4.1.4 saturates narrow integers.) Equal on all
// ranks.
inline bool is_exact(const Call& call) {
  const Reduction& reduction = call.reduction;
  return !reduction.kernel || (reduction.arithmetic && is_wide_integer(reduction.arithmetic->type));
}

// Packs what a call's views have sources for, before its algorithm runs. (Shared-memory algorithms
// need everything packed, and leave all unpacking to the caller.)
Status pack_all(const Call& call, Rank ranks);

// The failure of a source, if one has failed.
Status why_not_packed(const Call& call);

}  // namespace sluice
