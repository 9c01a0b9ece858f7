// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/single_copy.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr size_t longest_read = size_t{1} << 30;

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
         seen == theirs.content;
}

bool SingleCopy::fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    iovec local{to, std::min(bytes, longest_read)};
    iovec remote{reinterpret_cast<void*>(address), local.iov_len};
    const ssize_t read =
        process_vm_readv(static_cast<pid_t>(processes_[rank]), &local, 1, &remote, 1, 0);
    if (read <= 0) return false;
    address += static_cast<size_t>(read);
    to += read;
    bytes -= static_cast<size_t>(read);
  }
  return true;
}

}  // namespace sluice
