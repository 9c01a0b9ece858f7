// SPDX-License-Identifier: BSD-3-Clause
//
// An MPI datatype as a type of elements.
#pragma once

#include "src/memory/element_type.h"
#include "src/mpi/real.h"

namespace sluice {

struct Datatype : ElementType {
  bool is_read = true;    // whether its layout is known; if not, no data can be moved
  bool committed = true;  // at its first use; if not, it may have been committed since
  bool is_kept = true;    // for later calls; false: valid for this call only
  MPI_Datatype handle{};
};

// Sets handle, size, extent and, as start, the true lower bound. False if MPI has no such type.
bool measure_datatype(MPI_Datatype handle, Datatype* description);

}  // namespace sluice
