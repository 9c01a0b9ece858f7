// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/single_copy.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "src/base/copy.h"

namespace sluice {
namespace {

constexpr size_t longest_move = size_t{1} << 30;
constexpr size_t longest_stop = size_t{64} << 10;  // which the second cache holds

using Move = decltype(process_vm_readv);

bool move_all(Move move, uint64_t process, uint64_t address, std::byte* here, size_t bytes) {
  while (bytes > 0) {
    iovec local{here, std::min(bytes, longest_move)};
    iovec remote{reinterpret_cast<void*>(address), local.iov_len};
    const ssize_t moved = move(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    address += static_cast<size_t>(moved);
    here += moved;
    bytes -= static_cast<size_t>(moved);
  }
  return true;
}

}  // namespace

SingleCopy::SingleCopy(uint32_t ranks) : processes_(ranks) {
  if (getrandom(&content_, sizeof(content_), 0) != sizeof(content_)) content_ = 0;
}

Fetcher::Introduction SingleCopy::introduction() const {
  return {static_cast<uint64_t>(getpid()), reinterpret_cast<uintptr_t>(&content_), content_};
}

bool SingleCopy::meet(uint32_t rank, const Introduction& theirs) {
  processes_[rank] = theirs.process;
  uint64_t seen = 0;
  return theirs.content != 0 &&
         fetch(rank, theirs.address, reinterpret_cast<std::byte*>(&seen), sizeof(seen)) &&
         seen == theirs.content &&
         // What is there already.
         put(rank, theirs.address, reinterpret_cast<const std::byte*>(&seen), sizeof(seen));
}

// What the kernel reads of this process for this process itself it reads for the others, and what
// it writes as well: both go by the same kind of mapping. It takes 1.5 us. (A buffer is of one
// kind: its first and last bytes stand for it.)
bool SingleCopy::is_in_reach(const std::byte* data, size_t bytes) {
  if (bytes == 0) return true;
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + bytes;
  for (const Range& range : reached_) {
    if (range.begin <= begin && end <= range.end) return true;
  }
  char ends[2];
  const iovec here{ends, sizeof(ends)};
  const iovec there[2] = {{const_cast<std::byte*>(data), 1},
                          {const_cast<std::byte*>(data + bytes - 1), 1}};
  if (process_vm_readv(getpid(), &here, 1, there, 2, 0) != ssize_t{sizeof(ends)}) return false;
  reached_[next_++ % reached_.size()] = {begin, end};
  return true;
}

// Of longest_stop bytes; nullptr if there is no memory.
std::byte* SingleCopy::stop_like(uint64_t address) {
  if (!stop_) stop_.reset(new (std::nothrow) std::byte[longest_stop + copy_page]);
  return stop_ ? place_like(stop_.get(), address) : nullptr;
}

bool SingleCopy::fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
  const bool is_slow = is_slow_by_string_moves(reinterpret_cast<uintptr_t>(to), address, bytes);
  std::byte* const stop = is_slow ? stop_like(address) : nullptr;
  if (!stop) return move_all(process_vm_readv, processes_[rank], address, to, bytes);
  for (size_t at = 0; at < bytes; at += longest_stop) {
    const size_t piece = std::min(bytes - at, longest_stop);
    if (!move_all(process_vm_readv, processes_[rank], address + at, stop, piece)) return false;
    copy_bytes(to + at, stop, piece);
  }
  return true;
}

bool SingleCopy::put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
  const bool is_slow = is_slow_by_string_moves(address, reinterpret_cast<uintptr_t>(from), bytes);
  std::byte* const stop = is_slow ? stop_like(address) : nullptr;
  if (!stop) {
    return move_all(process_vm_writev, processes_[rank], address, const_cast<std::byte*>(from),
                    bytes);
  }
  for (size_t at = 0; at < bytes; at += longest_stop) {
    const size_t piece = std::min(bytes - at, longest_stop);
    copy_bytes(stop, from + at, piece);
    if (!move_all(process_vm_writev, processes_[rank], address + at, stop, piece)) return false;
  }
  return true;
}

}  // namespace sluice
