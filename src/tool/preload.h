// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the library that `sluice run` preloads, and its audit module, and checks that a program
// would load them.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/tool/program.h"

namespace sluice {

// The absolute path of the library: `named` if not empty, else the one of the build tree or
// installation that this command belongs to. An error lists the places searched.
Result<std::string> find_library(const std::string& named);

// The path of an MPI program of Sluice, in this command's build tree or installation.
Result<std::string> find_program(const std::string& name);

// The file of this command.
std::string own_file();

// Loads the library and asks its version. An error if it cannot be loaded or is not Sluice's.
Result<std::string> library_version(const std::string& library);

// A representation of MPI's handles that a library of Sluice may serve, by a module of its own.
struct ServedMpi {
  const char* name;    // "Open MPI"
  const char* id;      // "openmpi"
  std::string module;  // the module's path; empty: it is missing
};

// What the library in this folder serves.
std::vector<ServedMpi> served_mpis(const std::string& folder);

// The path of the audit module (src/audit/audit.c) of the library in this folder; empty: it is
// missing.
std::string audit_module(const std::string& folder);

// The environment variables that make the dynamic linker load the library.
struct Preload {
  std::string list;          // LD_PRELOAD
  std::string library_path;  // LD_LIBRARY_PATH; empty: it stays as it is
};

// LD_PRELOAD with what the environment's names, in its order, then the library. Sluice stands in
// for MPI, so it comes last: profilers define MPI_X too, and call PMPI_X, which Sluice defines.
// Whatever the environment's says of a Sluice is left out. That list takes no spaces, so a library
// in a folder with spaces is named by its file's name alone, and the folder stands at the end of
// LD_LIBRARY_PATH.
Preload preload_of(const std::string& library);

// Puts it into this process's environment, which the program inherits.
void apply_preload(const Preload& preload);

// The value for LD_AUDIT: the module, then what `existing` names besides. (It comes first, because
// glibc passes by those that stand behind one without an interest in a symbol.)
std::string audit_value(const std::string& module, const std::string& existing);

// Result of try_preload: what the dynamic linker would load for a program.
struct Loaded {
  std::string mpi;       // soname of the MPI that the program is linked with; empty: none
  std::string mpi_path;  // where it was found; empty: not found
  // The address sanitizer's runtime that the program is linked with, if the library would come
  // before it. Such a program ends at its start unless the runtime is the first library.
  std::string late_sanitizer{};
};

// Asks the program's dynamic linker, without starting the program. An error, with the linker's
// message, if the library would not be loaded.
Result<Loaded> try_preload(const Program& program, const std::string& library,
                           const Preload& preload);

// Asks the linker whether the program would start with the audit module and the preloads. An error
// names a preload that cannot be loaded beside an audit module. (With one the linker has less room
// for thread-local data at a fixed place, which jemalloc needs.)
Status try_audit(const Program& program, const std::string& module, const Preload& preload);

}  // namespace sluice
