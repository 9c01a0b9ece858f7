// SPDX-License-Identifier: BSD-3-Clause
//
// Optional modules: Sluice's own shared libraries for what not every host has (hwloc, OpenSSL,
// verbs, CUDA). The library itself needs only libc, and opens a module when it first needs it. A
// module exports one C function without arguments, which returns a constant table of C functions;
// the table begins with its version, an int. The folder that uses the table declares it in a header
// (src/host/module.h is one).
//
// A module and its library look names up in themselves before they do in the program
// (RTLD_DEEPBIND), which may have functions of the same names: BoringSSL's, or another libibverbs.
// That does not help if the program has loaded the library before. If such a library calls
// functions of another one instead of its own, the module is not used (interposition.h). The
// allocator must be the program's nevertheless (module_allocator.c). Modules are opened by dlmopen,
// in the program's namespace, because the dlopen of sanitizers refuses RTLD_DEEPBIND, lest two
// allocators mix.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "src/base/status.h"

namespace sluice {

struct Module {
  const char* file;    // "libsluice-hwloc.so"
  const char* symbol;  // of the function that returns the table
  int version;         // that the table must have
};

// The folder that holds this library's file (or the program's that it is linked into), as an
// absolute path without links, however it was loaded. It is never the folder that the program is in
// by now, which may hold a module of somebody else. Empty if nothing tells (the library was loaded
// by a relative path, and there is no /proc); then no module is opened.
std::string library_folder();

// Opens a module of the library in `folder`, and never closes it. The module is in folder/sluice/
// if installed, in `folder` in a build tree. The error (Code::unavailable) names the module and
// says whether it is missing, cannot be loaded, has libraries that the program has bound to other
// functions, or is of another version. Thread-safe. Opening it
// again finds the same table.
Result<const void*> open_module_table(const Module& module, const std::string& folder);

template <typename Table>
Result<const Table*> open_module(const Module& module, const std::string& folder) {
  static_assert(offsetof(Table, version) == 0 && std::is_same_v<decltype(Table::version), int>);
  auto opened = open_module_table(module, folder);
  if (!opened.ok()) return opened.status();
  return static_cast<const Table*>(*opened);
}

}  // namespace sluice
