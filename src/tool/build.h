// SPDX-License-Identifier: BSD-3-Clause
//
// What this build is: known when it was configured.
#pragma once

#include <string>

namespace sluice {

struct BuildInfo {
  std::string version;
  std::string compiler;
  std::string flags;       // CXXFLAGS
  std::string mpi;         // the MPI that it serves: "Open MPI 4.1.4"
  std::string mpi_soname;  // "libmpi.so.40"
};

BuildInfo build_info();

}  // namespace sluice
