// SPDX-License-Identifier: BSD-3-Clause
//
// Converts hints (src/engine/hints.h) from and to an MPI_Info.
#pragma once

#include "src/engine/hints.h"
#include "src/mpi/real.h"

namespace sluice {

// The hints for Sluice in an info, which may be MPI_INFO_NULL.
Hints read_hints(MPI_Info info);

// Sets these hints in an info, and deletes all other hints for Sluice from it.
void write_hints(const Hints& hints, MPI_Info info);

}  // namespace sluice
