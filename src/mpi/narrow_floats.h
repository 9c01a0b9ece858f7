// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of 16-bit floating-point numbers, for MPI libraries that have none: two bytes to MPI,
// numbers to Sluice (include/sluice/sluice.h).
#pragma once

#include <optional>

#include "src/mpi/real.h"
#include "src/reduce/kernel.h"

namespace sluice {

// What a datatype that Sluice made holds; nothing for any other.
std::optional<Type> narrow_float(MPI_Datatype handle);

// What MPI is to reduce with where a call with this type and operation is left to it: for types of
// Sluice's a user-defined operation, as MPI knows no sum of two bytes; else the same.
MPI_Op operation_for_mpi(MPI_Datatype handle, MPI_Op op);

// MPI_Finalize begins: some MPI libraries complain of what was not freed.
void free_narrow_floats();

}  // namespace sluice
