// SPDX-License-Identifier: BSD-3-Clause
//
// Fetching by process_vm_readv(2) and its sister for writing, which the kernel grants between
// processes of one user, unless a security module or a container says no. Where the kernel's way to
// copy would be slow (src/base/copy.h), data makes a stop in memory that lies as the other's does.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "transports/arena.h"

namespace sluice {

class SingleCopy final : public Fetcher {
 public:
  explicit SingleCopy(uint32_t ranks);
  Introduction introduction() const override;
  bool meet(uint32_t rank, const Introduction& theirs) override;
  bool is_in_reach(const std::byte* data, size_t bytes) override;
  bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override;
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override;

 private:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  std::byte* stop_like(uint64_t address);

  uint64_t content_;                 // random: another process has other content there
  std::vector<uint64_t> processes_;  // by rank
  std::array<Range, 8> reached_{};   // lately; what the program unmaps is not missed
  size_t next_ = 0;                  // in reached_, to be forgotten
  std::unique_ptr<std::byte[]> stop_;
};

}  // namespace sluice
