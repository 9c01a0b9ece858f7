// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of 16-bit floating-point numbers, for MPI libraries that have none. MPI sees two bytes;
// Sluice computes with them as numbers (include/sluice/sluice.h).
#pragma once

#include <optional>

#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// The element type of a datatype that Sluice made; nothing for any other.
std::optional<Type> narrow_float(MPI_Datatype handle);

// The operation to pass to MPI if a call with this type and operation is left to it. For Sluice's
// types it is a user-defined operation, as MPI cannot add two bytes; else it is `op`.
MPI_Op operation_for_mpi(MPI_Datatype handle, MPI_Op op);

// Called when MPI_Finalize begins: some MPI libraries complain of objects that were not freed.
void free_narrow_floats();

}  // namespace sluice
