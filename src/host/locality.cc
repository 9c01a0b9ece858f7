// SPDX-License-Identifier: BSD-3-Clause
#include "src/host/locality.h"

#include <sched.h>

#include "src/base/log.h"
#include "src/base/module.h"

namespace sluice {

Locality Locator::find(bool domains) {
  decltype(Locality::processors) processors{};
  static_assert(sizeof(cpu_set_t) == sizeof(processors));
  if (sched_getaffinity(0, sizeof(processors), reinterpret_cast<cpu_set_t*>(processors.data())) !=
      0) {
    processors = {};
  }
  const std::lock_guard lock(mutex_);
  if (!looked_) {
    const Budget budget = find_budget("/proc/self/cgroup", "/sys/fs/cgroup");
    last_.budget_holder = budget.holder;
    last_.budget = budget.size;
    looked_ = true;
  }
  if (last_.processors != processors) {
    last_.processors = processors;
    last_.cache = last_.node = 0;
    has_domains_ = false;
  }
  if (domains && !has_domains_) {
    find_domains(open_topology(library_folder()), &last_);
    has_domains_ = true;
  }
  return last_;
}

Result<const SluiceTopology*> open_topology(const std::string& folder) {
  return open_module<SluiceTopology>(
      {"libsluice-hwloc.so", SLUICE_TOPOLOGY_SYMBOL, SLUICE_TOPOLOGY_VERSION}, folder);
}

void find_domains(const Result<const SluiceTopology*>& topology, Locality* locality) {
  SluiceDomains found{};
  if (!topology.ok()) {
    log(Level::info, "no groups of ranks by caches: %s", topology.status().message().c_str());
    return;
  }
  if (locality->processors == decltype(locality->processors){}) return;
  if ((*topology)->find(locality->processors.data(), locality->processors.size(), &found) != 0)
    return;
  locality->cache = found.cache;
  locality->node = found.node;
}

}  // namespace sluice
