// SPDX-License-Identifier: BSD-3-Clause
//
// For programs whose collectives NCCL may carry.
#pragma once

#include <mpi.h>

#include <string>

namespace test {

// The algorithm of a communicator's last call, as Sluice tells it.
std::string algorithm_of(MPI_Comm communicator);

// Makes calls on device memory until NCCL carries them. Collective. The current context must be of
// a device that no other rank has, and Sluice must be told to use NCCL.
void start_nccl(MPI_Comm communicator);

}  // namespace test
