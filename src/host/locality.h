// SPDX-License-Identifier: BSD-3-Clause
//
// What a thread may use of its host: processors, as the kernel and its control groups allow, and
// which cache and NUMA node these share. Ranks of a team tell each other (src/engine/localities.h).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "src/base/status.h"
#include "src/host/module.h"

namespace sluice {

struct Locality {
  static constexpr size_t words = 16;  // 1024 processors; nothing is known of what has more

  uint64_t cache = 0, node = 0;              // as in SluiceDomains
  std::array<uint64_t, words> processors{};  // bits by the kernel's numbers; all zero: not known
  // The control group that bounds how much of processors it gets, and how many in thousandths; 0:
  // none does.
  uint64_t budget_holder = 0, budget = 0;
  // Ranks for each processor, this one's among them, that its process has met already; 0: unknown.
  uint64_t known_per_processor = 0;
};

// Finds the calling thread's, and remembers what takes long to find. Safe to call from several
// threads. domains: ask for cache and node, too, which opens the module that belongs to this
// library.
class Locator {
 public:
  Locality find(bool domains);

 private:
  std::mutex mutex_;
  bool looked_ = false;       // for the control groups' bounds
  bool has_domains_ = false;  // of last_.processors
  Locality last_;
};

// The tightest bound on processors of the control groups that this process is in, as in Locality.
// In the files of the kernel: "/proc/self/cgroup", "/sys/fs/cgroup".
struct Budget {
  uint64_t holder = 0, size = 0;
};
Budget find_budget(const std::string& membership, const std::string& mounts);

// Opens the module that belongs to a library in that folder (installed it is in sluice/ below, in a
// build tree beside it), and keeps it for good. An error says what was missing.
Result<const SluiceTopology*> open_topology(const std::string& folder);

// What the module says of the locality's processors; nothing where it is not there.
void find_domains(const Result<const SluiceTopology*>& topology, Locality* locality);

}  // namespace sluice
