// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of many short runs. A two-dimensional copy moves short rows slowly, and runs at irregular
// distances are a copy each, which takes the driver microseconds: a million of them took an MPI
// library seconds (open-mpi/ompi#8720). Here a kernel gathers the runs in scratch memory on the
// device, or scatters them from there, and one copy brings them to the host or from it.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// Begins copies of the first kinds of runs, if a kernel pays off for them. *packed: the number of
// these kinds; 0 also without scratch or a kernel. The stream's context must be current. False,
// with the reason, if a launch or a copy failed.
bool begin_packed(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count,
                  bool to_device, size_t* packed, char* why);

}  // namespace sluice::cuda
