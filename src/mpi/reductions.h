// SPDX-License-Identifier: BSD-3-Clause
//
// Which kernel serves a datatype and an operation.
#pragma once

#include "src/mpi/datatypes.h"
#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// What a reduction works on: elements as MPI packs them. A pair type with a gap, as MPI_DOUBLE_INT
// is (a double and an int in 16 bytes), has elements of 12 bytes then: the gap is the program's.
// Under an operation that the program defined the kernel is UserOperation's, and its context is to
// be set.
struct Reducible {
  Datatype datatype;
  Reduction reduction;
  bool user_defined = false;
};

// nullptr where MPI is to judge: pairs of type and operation that it does not define (it has an
// error for those), and types without data. MPI makes type and operation equal on all ranks, and so
// is the answer. Valid until the thread's next call.
const Reducible* find_reducible(MPI_Datatype datatype, MPI_Op op);

}  // namespace sluice
