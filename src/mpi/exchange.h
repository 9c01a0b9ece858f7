// SPDX-License-Identifier: BSD-3-Clause
//
// A collective call in MPI's terms, after its arguments have been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/memory/side.h"
#include "src/mpi/datatype.h"
#include "src/mpi/real.h"
#include "src/mpi/thread_state.h"

namespace sluice {

// The datatype of a side; nullptr if this rank has no such side. (In src/mpi the elements of all
// sides are of datatypes.)
inline const Datatype* datatype_of(const Side& side) {
  return static_cast<const Datatype*>(side.type);
}

struct Exchange : UnplacedCall {
  // The user-defined operation, if the call reduces with one. The kernel's context must still be
  // set (user_operation.h).
  std::optional<MPI_Op> user_op;
  // Why this rank can't do its part, though the rest of the call is described; ok: it can. The
  // others see nothing of it, and MPI may take the call.
  Status refusal;
  // A buffer that is none: MPI_IN_PLACE where MPI does not allow it, or null where there is data.
  // MPI may have an error for it.
  enum class Fault : uint8_t { none, in_place, null };
  Fault fault = Fault::none;
  // The program passed MPI_IN_PLACE.
  bool in_place = false;
  // The program gave the same memory for input and output, which MPI does not allow. alias_at:
  // where such an input lies, in bytes from the output's buffer.
  bool aliased = false;
  ptrdiff_t alias_at = 0;
  // The count of freed types before the types of this call were looked up: if the count has
  // changed, a handle may mean another type.
  uint64_t types_freed = datatypes_freed.load(std::memory_order_acquire);
};

}  // namespace sluice
