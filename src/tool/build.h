// SPDX-License-Identifier: BSD-3-Clause
//
// Facts about this build, fixed at configure time.
#pragma once

#include <string>

#include "src/base/setting_sources.h"

namespace sluice {

struct BuildInfo {
  std::string version;
  std::string compiler;
  std::string flags;       // CXXFLAGS
  std::string mpi;         // that its benchmarks were built with: "Open MPI 4.1.4"
  std::string mpi_soname;  // "libmpi.so.40"
};

BuildInfo build_info();

// What this process has been told, by variables and by the files that programs read. Reads the
// files at each call.
SettingSources setting_sources();

}  // namespace sluice
