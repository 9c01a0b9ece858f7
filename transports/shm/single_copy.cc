// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/single_copy.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "src/base/copy.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr size_t longest_move = size_t{1} << 30;
constexpr size_t longest_stop = size_t{64} << 10;  // fits the second-level cache

using Move = decltype(process_vm_readv);

// Returns 0 or an errno value. A call that meets a page that can't be copied moves less than asked;
// the call after it returns the error.
int move_all(Move move, uint64_t process, uint64_t address, std::byte* here, size_t bytes) {
  while (bytes > 0) {
    iovec local{here, std::min(bytes, longest_move)};
    iovec remote{reinterpret_cast<void*>(address), local.iov_len};
    const ssize_t moved =
        system_call([&] { return move(static_cast<pid_t>(process), &local, 1, &remote, 1, 0); });
    if (moved <= 0) return moved < 0 ? static_cast<int>(-moved) : EFAULT;
    address += static_cast<size_t>(moved);
    here += moved;
    bytes -= static_cast<size_t>(moved);
  }
  return 0;
}

#ifdef MADV_POPULATE_READ
constexpr int populate = MADV_POPULATE_READ;
#else
constexpr int populate = 22;
#endif

// Makes the kernel read all pages, as it would to copy from them.
bool populate_pages(uintptr_t begin, uintptr_t end) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = begin / page * page, last = (end + page - 1) / page * page;
  return madvise(reinterpret_cast<void*>(first), last - first, populate) == 0;
}

// Reads a byte of each page; three times as slow as populate_pages.
bool read_pages(uintptr_t begin, uintptr_t end) {
  char bytes[128];
  iovec places[sizeof(bytes)];
  while (begin < end) {
    size_t count = 0;
    for (; begin < end && count < sizeof(bytes); begin = (begin / copy_page + 1) * copy_page) {
      places[count++] = {reinterpret_cast<void*>(begin), 1};
    }
    const iovec here{bytes, count};
    const ssize_t read = process_vm_readv(getpid(), &here, 1, places, count, 0);
    if (read != static_cast<ssize_t>(count)) return false;
  }
  return true;
}

}  // namespace

bool SingleCopy::can_populate() {
  const auto here = reinterpret_cast<uintptr_t>(&populate);
  return populate_pages(here, here + 1);
}

SingleCopy::SingleCopy(ReachCache& cache, std::span<const ProcessId> ids)
    : SingleCopy(static_cast<uint32_t>(ids.size())) {
  reach_cache_ = &cache;
  ids_.assign(ids.begin(), ids.end());
  for (size_t rank = 0; rank < ids.size(); ++rank) {
    const auto known = cache.find(ids[rank]);
    if (!known) continue;
    processes_[rank] = known->process;
    met_[rank] = known->good;
  }
}

SingleCopy::SingleCopy(uint32_t ranks, bool populates)
    : populates_(populates), processes_(ranks), met_(ranks) {
  if (getrandom(&content_, sizeof(content_), 0) != sizeof(content_)) content_ = 0;
}

std::unique_ptr<Cma> SingleCopy::make_another() const {
  auto made = std::make_unique<SingleCopy>(static_cast<uint32_t>(processes_.size()), populates_);
  made->processes_ = processes_;
  made->met_ = met_;
  made->reach_cache_ = reach_cache_;
  made->ids_ = ids_;
  return made;
}

Cma::Introduction SingleCopy::introduction() const {
  return {static_cast<uint64_t>(getpid()), reinterpret_cast<uintptr_t>(&content_), content_};
}

bool SingleCopy::probe_reading(uint32_t rank, const Introduction& theirs) {
  processes_[rank] = theirs.process;
  uint64_t seen = 0;
  return theirs.content != 0 &&
         cma_get(rank, theirs.address, reinterpret_cast<std::byte*>(&seen), sizeof(seen)) == 0 &&
         seen == theirs.content;
}

bool SingleCopy::probe(uint32_t rank, const Introduction& theirs) {
  const auto* const content = reinterpret_cast<const std::byte*>(&theirs.content);
  // Writes back the value just read.
  const bool good = probe_reading(rank, theirs) &&
                    put(rank, theirs.address, content, sizeof(theirs.content)) == 0;
  if (reach_cache_) reach_cache_->learn(ids_[rank], {theirs.process, good});
  return good;
}

// After a CMA failure: a process may change its user, so the ranks of its next team must try again.
int SingleCopy::forget_if(int error, uint32_t rank) {
  if (error != 0 && reach_cache_) reach_cache_->forget(ids_[rank]);
  return error;
}

// Tests this process's own access, by the kernel. The result holds for other processes, because it
// depends only on the kind of mapping. Takes 1.5 us, plus 10 us per MB.
bool SingleCopy::is_in_reach(const std::byte* data, size_t bytes) {
  if (bytes == 0) return true;
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + bytes;
  for (const Range& range : reached_) {
    if (range.begin <= begin && end <= range.end) return true;
  }
  if (!(populates_ ? populate_pages : read_pages)(begin, end)) return false;
  reached_[next_++ % reached_.size()] = {begin, end};
  return true;
}

// A bounce buffer of longest_stop bytes; nullptr if there is no memory.
std::byte* SingleCopy::stop_like(uint64_t address) {
  if (!stop_) stop_.reset(new (std::nothrow) std::byte[longest_stop + copy_page]);
  return stop_ ? place_like(stop_.get(), address) : nullptr;
}

int SingleCopy::cma_get(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
  const bool is_slow = is_slow_by_string_moves(reinterpret_cast<uintptr_t>(to), address, bytes);
  std::byte* stop = is_slow ? stop_like(address) : nullptr;
  int error = 0;
  if (!stop) {
    error = move_all(process_vm_readv, processes_[rank], address, to, bytes);
    if (error != EFAULT) return forget_if(error, rank);
    // One end can't be copied. If it is this one, the program's handler may make `to` writable.
    stop = stop_like(address);
    error = stop ? 0 : ENOMEM;
  }
  for (size_t at = 0; error == 0 && at < bytes; at += longest_stop) {
    const size_t piece = std::min(bytes - at, longest_stop);
    error = move_all(process_vm_readv, processes_[rank], address + at, stop, piece);
    if (error == 0) copy_bytes(to + at, stop, piece);
  }
  return forget_if(error, rank);
}

int SingleCopy::put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
  const bool is_slow = is_slow_by_string_moves(address, reinterpret_cast<uintptr_t>(from), bytes);
  std::byte* const stop = is_slow ? stop_like(address) : nullptr;
  if (!stop) {
    auto* const data = const_cast<std::byte*>(from);
    return forget_if(move_all(process_vm_writev, processes_[rank], address, data, bytes), rank);
  }
  int error = 0;
  for (size_t at = 0; error == 0 && at < bytes; at += longest_stop) {
    const size_t piece = std::min(bytes - at, longest_stop);
    copy_bytes(stop, from + at, piece);
    error = move_all(process_vm_writev, processes_[rank], address + at, stop, piece);
  }
  return forget_if(error, rank);
}

}  // namespace sluice
