// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses the reduction kernel for a datatype and an operation.
#pragma once

#include "src/mpi/datatype.h"
#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// The elements of a reduction, as MPI packs them, and its kernel. A pair type with a gap, such as
// MPI_DOUBLE_INT (a double and an int in 16 bytes), has elements of 12 bytes: Sluice does not touch
// the gap. With a user-defined operation the kernel is UserOperation's, and the caller sets its
// context.
struct Reducible {
  Datatype datatype;
  Reduction reduction;
  bool user_defined = false;
};

// nullptr if MPI is to do the call: it does not define the operation on the type (and has an error
// for that), or the type has no data. MPI makes type and operation equal on all ranks, so the
// answer is equal, too. Valid until the thread's next call.
const Reducible* find_reducible(MPI_Datatype datatype, MPI_Op op);

}  // namespace sluice
