// SPDX-License-Identifier: BSD-3-Clause
//
// From a datatype to its layout: MPI tells how a type was constructed (MPI, section "Decoding a
// Datatype"), and the layout is constructed likewise. Where MPI does not tell, the bytes of one
// packed element say where they came from.
#pragma once

#include "src/mpi/layout.h"
#include "src/mpi/real.h"

namespace sluice {

// False if it can't be found out: MPI refuses, or the type is of a kind without a constructor here
// and too large to be packed as a whole. May throw std::bad_alloc.
bool read_layout(MPI_Datatype type, Layout* layout);

}  // namespace sluice
