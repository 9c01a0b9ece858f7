// SPDX-License-Identifier: BSD-3-Clause
//
// The library that `sluice run` preloads, and whether a program would really load it.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/tool/program.h"

namespace sluice {

// The library: `named` if it is not empty, else the one of the build tree or installation that this
// command belongs to. The path is absolute. Errors list where was looked.
Result<std::string> find_library(const std::string& named);

// An MPI program of Sluice's own, of the build tree or installation that this command belongs to.
Result<std::string> find_program(const std::string& name);

// This command's own file.
std::string own_file();

// The version that the library says it has. An error if it cannot be loaded or is not Sluice's.
Result<std::string> library_version(const std::string& library);

// LD_PRELOAD with the library in front of what is there already (nullptr: nothing).
std::string preload_value(const std::string& library, const char* existing);

// What the dynamic linker would load for a program.
struct Loaded {
  std::string mpi;       // the soname of the MPI that the program is linked with; empty: none
  std::string mpi_path;  // where it was found; empty: nowhere
};

// Asks the program's own dynamic linker, without starting the program. An error if the library
// would not be loaded, with the linker's words.
Result<Loaded> try_preload(const Program& program, const std::string& library,
                           const std::string& preload);

}  // namespace sluice
