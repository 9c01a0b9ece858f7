// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/build.h"

#include <cstdlib>

#include "config.h"
#include "sluice/sluice.h"

namespace sluice {

BuildInfo build_info() {
  return {.version = SLUICE_VERSION,
          .compiler = SLUICE_COMPILER,
          .flags = SLUICE_CXXFLAGS SLUICE_MODE_FLAGS,
          .mpi = SLUICE_MPI_LIBRARY,
          .mpi_soname = SLUICE_MPI_SONAME};
}

SettingSources setting_sources() {
  return find_settings(std::getenv, SLUICE_SYSCONFDIR "/sluice.conf", is_privileged_process());
}

}  // namespace sluice
