// SPDX-License-Identifier: BSD-3-Clause
//
// Hints (src/engine/hints.h) in MPI's form, an info.
#pragma once

#include "src/engine/hints.h"
#include "src/mpi/real.h"

namespace sluice {

// Those in an info, which may be MPI_INFO_NULL.
Hints read_hints(MPI_Info info);

// These are to be its hints, and no others.
void write_hints(const Hints& hints, MPI_Info info);

}  // namespace sluice
