// SPDX-License-Identifier: BSD-3-Clause
//
// Builds the layout of a datatype. MPI reports how the type was constructed (MPI standard, section
// "Decoding a Datatype"), and the layout is constructed likewise. If MPI does not report it, an
// element whose bytes are numbered is packed, and shows where each byte came from.
#pragma once

#include "src/memory/layout.h"
#include "src/mpi/real.h"

namespace sluice {

// False if the layout can't be found: MPI has an error, or the type has a constructor that is not
// known here and is too large to be packed as a whole. May throw std::bad_alloc.
bool read_layout(MPI_Datatype type, Layout* layout);

}  // namespace sluice
