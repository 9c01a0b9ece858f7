// SPDX-License-Identifier: BSD-3-Clause
//
// MPI's predefined datatypes and operations, and which kernel serves a pair of them.
#pragma once

#include "src/mpi/datatypes.h"
#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// A predefined type under a predefined operation. In reductions elements are taken whole, with the
// gaps that pair types have, so that they are always dense.
struct Reducible {
  Datatype datatype;
  Reduction reduction;
};

// nullptr where MPI does it: derived types, user-defined operations, and pairs of type and
// operation that MPI does not define (it has an error for those). MPI makes type and operation
// equal on all ranks, and so is the answer. Valid until the thread's next call.
const Reducible* find_reducible(MPI_Datatype datatype, MPI_Op op);

}  // namespace sluice
