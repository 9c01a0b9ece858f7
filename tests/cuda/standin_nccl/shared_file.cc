// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin_nccl/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace standin_nccl {
namespace {

constexpr size_t head_bytes = (sizeof(SharedHead) + 4095) / 4096 * 4096;
constexpr size_t most_bytes = size_t{1} << 32;  // of one message; only what is written takes memory

off_t place(int from, int to) {
  const auto index = static_cast<size_t>(from) * (most_ranks + 1) + static_cast<size_t>(to);
  return static_cast<off_t>(head_bytes + index * most_bytes);
}

template <typename Transfer>
bool whole(size_t bytes, off_t at, Transfer transfer) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = transfer(done, bytes - done, at + static_cast<off_t>(done));
    if (now <= 0) return false;
    done += static_cast<size_t>(now);
  }
  return true;
}

}  // namespace

bool SharedFile::make(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  const char* const folder = std::getenv("NCCL_STANDIN_FOLDER");
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%s/nccl-standin-%d-%d",
                folder ? folder : "/dev/shm", static_cast<int>(getpid()), ++made);
  const int file = open(id->internal, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool is_sized = ftruncate(file, head_bytes) == 0;
  close(file);
  return is_sized;
}

SharedFile::SharedFile(const ncclUniqueId& id) : path_(id.internal) {
  file_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) return;
  void* const address = mmap(nullptr, head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (address != MAP_FAILED) head_ = static_cast<SharedHead*>(address);
}

SharedFile::~SharedFile() {
  if (head_) munmap(head_, head_bytes);
  if (file_ >= 0) close(file_);
}

void SharedFile::come(int rank, int ranks) {
  row(rank).has_come = 1;
  if (++head_->come == ranks) remove_name();
}

bool SharedFile::write(int from, int to, const std::vector<std::byte>& data) {
  return whole(data.size(), place(from, to), [&](size_t done, size_t left, off_t at) {
    return pwrite(file_, data.data() + done, left, at);
  });
}

bool SharedFile::read(int from, int to, std::vector<std::byte>* data) {
  return whole(data->size(), place(from, to), [&](size_t done, size_t left, off_t at) {
    return pread(file_, data->data() + done, left, at);
  });
}

void SharedFile::remove_name() { unlink(path_.c_str()); }

}  // namespace standin_nccl
