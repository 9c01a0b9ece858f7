// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include "src/host/locality.h"

namespace sluice {
namespace {

constexpr const char* module_name = "libsluice-hwloc.so";

Result<const SluiceTopology*> open_module(const std::string& path) {
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) return Status{Code::unavailable, dlerror()};
  auto* const entry = reinterpret_cast<SluiceTopologyEntry*>(dlsym(module, SLUICE_TOPOLOGY_SYMBOL));
  const SluiceTopology* const topology = entry ? entry() : nullptr;
  if (topology && topology->version == SLUICE_TOPOLOGY_VERSION) return topology;
  dlclose(module);
  return Status{Code::unavailable, path + " is no topology module of this version"};
}

}  // namespace

Result<const SluiceTopology*> open_topology(const std::string& folder) {
  auto installed = open_module(folder + "/sluice/" + module_name);
  if (installed.ok()) return installed;
  auto built = open_module(folder + "/" + module_name);
  return built.ok() ? std::move(built) : std::move(installed);
}

}  // namespace sluice
