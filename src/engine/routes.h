// SPDX-License-Identifier: BSD-3-Clause
//
// Ways to do a call that are no algorithms of Sluice's. Each has a row as algorithms do, under
// whose name its calls are counted and told. A row serves all collectives; its own says nothing.
#pragma once

#include "collectives/algorithm.h"

namespace sluice::routes {

inline constexpr Algorithm mpi{.collective = {}, .name = "mpi", .help = "MPI's own function"};
inline constexpr Algorithm ipc{
    .collective = {}, .name = "ipc", .help = "CUDA IPC, for data on devices of one host"};
inline constexpr Algorithm nccl{
    .collective = {}, .name = "nccl", .help = "NCCL, for data on CUDA devices"};

}  // namespace sluice::routes
