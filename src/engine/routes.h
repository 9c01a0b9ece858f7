// SPDX-License-Identifier: BSD-3-Clause
//
// Ways to do a call that are no algorithms of Sluice's. Each has a row as algorithms do, under
// whose name its calls are counted, delayed (SLUICE_DELAY) and told. A row serves all collectives;
// its own says nothing.
#pragma once

#include <string>
#include <string_view>

#include "collectives/algorithm.h"

namespace sluice::routes {

inline constexpr Algorithm mpi{.collective = {}, .name = "mpi", .help = "MPI's own function"};
inline constexpr Algorithm ipc{
    .collective = {}, .name = "ipc", .help = "CUDA IPC, for data on devices of one host"};
inline constexpr Algorithm nccl{
    .collective = {}, .name = "nccl", .help = "NCCL, for data on CUDA devices"};
inline bool is_carriers(const Algorithm& route) { return &route == &ipc || &route == &nccl; }
inline constexpr const Algorithm* all[] = {&mpi, &ipc, &nccl};

// The route of that name; nullptr if there is none.
inline const Algorithm* find(std::string_view name) {
  for (const Algorithm* each : all) {
    if (name == each->name) return each;
  }
  return nullptr;
}

// For people: "MPI", "CUDA IPC", "NCCL", "Sluice's flat". name: of an algorithm or a route.
inline std::string describe(std::string_view name) {
  if (name == mpi.name) return "MPI";
  if (name == ipc.name) return "CUDA IPC";
  if (name == nccl.name) return "NCCL";
  return "Sluice's " + std::string(name);
}

}  // namespace sluice::routes
