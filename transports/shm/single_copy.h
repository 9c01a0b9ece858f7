// SPDX-License-Identifier: BSD-3-Clause
//
// CMA (cross memory attach): get by process_vm_readv(2), put by process_vm_writev(2). The kernel
// permits both between processes of one user, unless a security module or a container forbids it.
// If the kernel's copy would be slow (src/base/copy.h), data goes through a bounce buffer that has
// the remote end's alignment in its page.
//
// Memory is in reach if the kernel can read every page of it. It can't read device memory that is
// mapped (VM_IO), secret memory, or unmapped addresses; a buffer that contains any is not in reach.
// Buffers found in reach are cached. If the program then maps something else there, or changes its
// user, get and put fail: that is an error, never a partial success.
//
// A program may write-protect its memory, and unprotect it in a handler of SIGSEGV. The kernel's
// copy does not run the handler. So a get that the kernel can't write goes through the bounce
// buffer, from which this process copies. Before a put, the owner must touch the pages.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transports/shm/arena.h"

namespace sluice {

// CMA results for the processes that this process has tried, kept across teams. Any thread may
// call.
class ReachCache {
 public:
  struct Met {
    uint64_t process = 0;  // pid, as in Introduction
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

class SingleCopy final : public Cma {
 public:
  // populates: whether madvise(2) has MADV_POPULATE_READ (Linux 5.14).
  explicit SingleCopy(uint32_t ranks, bool populates = can_populate());
  // ids: the processes by rank. Some may be in the cache.
  SingleCopy(ReachCache& cache, std::span<const ProcessId> ids);
  Introduction introduction() const override;
  std::optional<bool> met(uint32_t rank) const override { return met_[rank]; }
  bool probe(uint32_t rank, const Introduction& theirs) override;
  // The same, but only whether it can be read.
  bool probe_reading(uint32_t rank, const Introduction& theirs);
  bool is_in_reach(const std::byte* data, size_t bytes) override;
  int cma_get(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override;
  int put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override;
  std::unique_ptr<Cma> make_another() const override;

 private:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  static bool can_populate();
  std::byte* stop_like(uint64_t address);
  int forget_if(int error, uint32_t rank);

  const bool populates_;
  uint64_t content_;                 // random, so another process has other content at this address
  std::vector<uint64_t> processes_;  // by rank
  std::vector<std::optional<bool>> met_;
  ReachCache* reach_cache_ = nullptr;
  std::vector<ProcessId> ids_;      // only with a cache
  std::array<Range, 8> reached_{};  // latest buffers found in reach
  size_t next_ = 0;                 // entry of reached_ to replace next
  std::unique_ptr<std::byte[]> stop_;
};

}  // namespace sluice
