// SPDX-License-Identifier: BSD-3-Clause
//
// Which part of its host a thread may use: its processors, its cgroup CPU quota, and the cache and
// NUMA node that the processors share. The ranks of a team exchange this (src/engine/localities.h).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "src/base/status.h"
#include "src/host/module.h"

namespace sluice {

struct Locality {
  static constexpr size_t words = 16;  // 1024 processors; on larger hosts nothing is known

  uint64_t cache = 0, node = 0;              // as in SluiceDomains
  std::array<uint64_t, words> processors{};  // bits by kernel number; all zero: unknown
  // The cgroup with the smallest CPU quota, and that quota in thousandths of a processor; 0: no
  // quota.
  uint64_t budget_holder = 0, budget = 0;
  // Ranks per processor, this one included, that this process saw in earlier teams; 0: unknown.
  uint64_t known_per_processor = 0;
};

// Finds the Locality of the calling thread and caches what is slow to find. Thread-safe. domains:
// also find cache and node, which loads the topology module that belongs to this library.
class Locator {
 public:
  Locality find(bool domains);

 private:
  std::mutex mutex_;
  bool looked_ = false;       // cgroup quotas were read
  bool has_domains_ = false;  // cache and node are those of last_.processors
  Locality last_;
};

// The smallest CPU quota of the cgroups that this process is in, as in Locality. The arguments are
// the kernel's files: "/proc/self/cgroup", "/sys/fs/cgroup".
struct Budget {
  uint64_t holder = 0, size = 0;
};
Budget find_budget(const std::string& membership, const std::string& mounts);

// Loads the topology module of a library in `folder` and never unloads it. The module is in
// folder/sluice/ if installed, in `folder` in a build tree. An error says what was missing.
Result<const SluiceTopology*> open_topology(const std::string& folder);

// Sets cache and node from the locality's processors; leaves them if there is no module.
void find_domains(const Result<const SluiceTopology*>& topology, Locality* locality);

}  // namespace sluice
