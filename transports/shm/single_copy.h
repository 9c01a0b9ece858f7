// SPDX-License-Identifier: BSD-3-Clause
//
// Fetching by process_vm_readv(2) and its sister for writing, which the kernel grants between
// processes of one user, unless a security module or a container says no.
#pragma once

#include <vector>

#include "transports/arena.h"

namespace sluice {

class SingleCopy final : public Fetcher {
 public:
  explicit SingleCopy(uint32_t ranks);
  Introduction introduction() const override;
  bool meet(uint32_t rank, const Introduction& theirs) override;
  bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override;
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override;

 private:
  uint64_t content_;                 // random: another process has other content there
  std::vector<uint64_t> processes_;  // by rank
};

}  // namespace sluice
