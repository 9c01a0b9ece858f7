// SPDX-License-Identifier: BSD-3-Clause
//
// Reports a failed call to the program.
#pragma once

#include "src/base/status.h"
#include "src/mpi/real.h"

namespace sluice {

// Calls the communicator's error handler with an error code of Sluice's own error class, whose
// string says what happened. Returns the code if the handler returns (MPI_ERRORS_RETURN).
int raise_error(MPI_Comm comm, const Status& status);

}  // namespace sluice
