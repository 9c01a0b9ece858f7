// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/module.h"
#include "src/host/locality.h"

namespace sluice {

Result<const SluiceTopology*> open_topology(const std::string& folder) {
  return open_module<SluiceTopology>(
      {"libsluice-hwloc.so", SLUICE_TOPOLOGY_SYMBOL, SLUICE_TOPOLOGY_VERSION}, folder);
}

}  // namespace sluice
