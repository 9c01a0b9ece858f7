// SPDX-License-Identifier: BSD-3-Clause
//
// How a program learns that a call failed.
#pragma once

#include "src/base/status.h"
#include "src/mpi/real.h"

namespace sluice {

// Calls the communicator's error handler with an error code of a class of Sluice's own, whose
// string says what happened; returns the code where the handler returns (MPI_ERRORS_RETURN).
int raise_error(MPI_Comm comm, const Status& status);

}  // namespace sluice
