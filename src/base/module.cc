// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "src/base/interposition.h"

namespace sluice {
namespace {

using Entry = const void*();

std::string path_of(const Module& module, const std::string& folder) {
  for (const char* place : {"/sluice/", "/"}) {
    std::string path = folder + place + module.file;
    if (access(path.c_str(), F_OK) == 0) return path;
  }
  return {};
}

// (Every table begins with an int.)
int version_of(const void* table) { return *static_cast<const int*>(table); }

// The path in a line of /proc/self/maps, if the line's addresses include this one. (A newline in a
// path is written \012, like those four characters, so the two look alike.)
std::string path_at(uintptr_t address, const char* line) {
  uintptr_t begin = 0, end = 0;
  int before = 0;
  if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &before) <
          2 ||
      before == 0 || address < begin || address >= end) {
    return {};
  }
  const std::string path = line + before;
  return path.starts_with('/') && path.find("\\012") == std::string::npos ? path : std::string();
}

// The file that is mapped at the address, as the kernel knows it; empty if it does not say.
std::string mapped_at(const void* address) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                   std::fclose);
  std::string found;
  char* line = nullptr;
  size_t room = 0;
  while (maps && found.empty() && getline(&line, &room, maps.get()) > 0) {
    found = path_at(reinterpret_cast<uintptr_t>(address), line);
  }
  std::free(line);
  return found;
}

// The path that the loader was given, if it is absolute: links in it may lead elsewhere by now.
std::string loaded_at(const void* address) {
  Dl_info about{};
  if (dladdr(address, &about) == 0 || !about.dli_fname || about.dli_fname[0] != '/') return {};
  const std::unique_ptr<char, void (*)(void*)> path(realpath(about.dli_fname, nullptr), std::free);
  return path ? path.get() : std::string();
}

// Why the module's libraries can't be used; empty if they can.
std::string problem_of_libraries(void* module) {
  const Interposition found = find_interposition(module);
  if (!found.found()) return {};
  const std::string by = found.by.empty() ? "the program" : found.by;
  return "calls of " + found.function + " in " + found.library +
         ", which the program has loaded, go to " + by +
         ", which has functions of the same names: hide these in " + by + ", or load " +
         found.library + " with RTLD_NOW|RTLD_DEEPBIND";
}

}  // namespace

std::string library_folder() {
  const auto* const here = reinterpret_cast<const void*>(&library_folder);
  std::string file = mapped_at(here);
  if (file.empty()) file = loaded_at(here);
  return file.substr(0, std::max<size_t>(file.rfind('/'), 1));
}

Result<const void*> open_module_table(const Module& module, const std::string& folder) {
  const auto lacks = [](std::string why) { return Status{Code::unavailable, std::move(why)}; };
  if (!folder.starts_with('/')) {
    return lacks(std::string(module.file) +
                 " is not looked for, because the library's folder is "
                 "not known: preload the library by its absolute path");
  }
  const std::string path = path_of(module, folder);
  if (path.empty()) {
    return lacks(std::string(module.file) + " is neither in " + folder + "/sluice nor in " +
                 folder);
  }
  void* const opened = dlmopen(LM_ID_BASE, path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!opened) {
    const char* const why = dlerror();
    return lacks(std::string(module.file) + " cannot be loaded: " + (why ? why : "unknown error"));
  }
  if (std::string problem = problem_of_libraries(opened); !problem.empty()) {
    return lacks(std::string(module.file) + " cannot be used: " + problem);
  }
  auto* const entry = reinterpret_cast<Entry*>(dlsym(opened, module.symbol));
  const void* const table = entry ? entry() : nullptr;
  if (table && version_of(table) == module.version) return table;
  std::string has = table ? "version " + std::to_string(version_of(table)) : "no version";
  dlclose(opened);
  return lacks(path + " has " + has + " of " + module.symbol + ", this library needs version " +
               std::to_string(module.version));
}

}  // namespace sluice
