// SPDX-License-Identifier: BSD-3-Clause
//
// Fetching by process_vm_readv(2) and its sister for writing, which the kernel grants between
// processes of one user, unless a security module or a container says no. Where the kernel's way to
// copy would be slow (src/base/copy.h), data makes a stop in memory that lies as the other's does.
//
// Memory is in reach if the kernel copies from every page of it: not from a card's memory that is
// mapped (VM_IO), secret memory, or where nothing is mapped. A buffer with such a hole is not in
// reach. A buffer found in reach is remembered; if the program then maps something else there, or
// changes its user, fetching fails, which is an error and never a partial success.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transports/arena.h"

namespace sluice {

// What a process knows of those that it has met. Any thread.
class ReachCache {
 public:
  struct Met {
    uint64_t process = 0;  // as in Introduction
    bool good = false;     // its memory can be read and written
  };
  std::optional<Met> find(const ProcessId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = met_.find(id);
    return found == met_.end() ? std::nullopt : std::optional(found->second);
  }
  void learn(const ProcessId& id, const Met& met) {
    const std::lock_guard lock(mutex_);
    met_[id] = met;
  }
  void forget(const ProcessId& id) {
    const std::lock_guard lock(mutex_);
    met_.erase(id);
  }

 private:
  mutable std::mutex mutex_;
  std::map<ProcessId, Met> met_;
};

class SingleCopy final : public Fetcher {
 public:
  // populates: madvise(2) knows MADV_POPULATE_READ (Linux 5.14).
  explicit SingleCopy(uint32_t ranks, bool populates = can_populate());
  // Of those processes, by rank, some of which may have been met before.
  SingleCopy(ReachCache& cache, std::span<const ProcessId> ids);
  Introduction introduction() const override;
  std::optional<bool> met(uint32_t rank) const override { return met_[rank]; }
  bool meet(uint32_t rank, const Introduction& theirs) override;
  bool is_in_reach(const std::byte* data, size_t bytes) override;
  int fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override;
  int put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override;

 private:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  static bool can_populate();
  std::byte* stop_like(uint64_t address);
  int forget_if(int error, uint32_t rank);

  const bool populates_;
  uint64_t content_;                 // random: another process has other content there
  std::vector<uint64_t> processes_;  // by rank
  std::vector<std::optional<bool>> met_;
  ReachCache* reach_cache_ = nullptr;
  std::vector<ProcessId> ids_;      // with cache
  std::array<Range, 8> reached_{};  // lately
  size_t next_ = 0;                 // in reached_, to be forgotten
  std::unique_ptr<std::byte[]> stop_;
};

}  // namespace sluice
