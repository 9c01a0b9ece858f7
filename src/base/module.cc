// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/module.h"

#include <dlfcn.h>
#include <unistd.h>

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

}  // namespace

std::string library_folder() {
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &about) == 0 || !about.dli_fname) {
    return {};
  }
  const std::string file = about.dli_fname;
  const size_t end = file.rfind('/');
  return end == std::string::npos ? "." : file.substr(0, end);
}

Result<const void*> open_module_table(const Module& module, const std::string& folder) {
  const std::string path = path_of(module, folder);
  const auto lacks = [](std::string why) { return Status{Code::unavailable, std::move(why)}; };
  if (path.empty()) {
    return lacks(std::string(module.file) + " is neither in " + folder + "/sluice nor in " +
                 folder);
  }
  void* const opened = dlmopen(LM_ID_BASE, path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!opened) {
    const char* const why = dlerror();
    return lacks(std::string(module.file) + " cannot be loaded: " + (why ? why : "unknown error"));
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
