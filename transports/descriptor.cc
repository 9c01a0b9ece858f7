// SPDX-License-Identifier: BSD-3-Clause
#include "transports/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "src/base/system_call.h"

namespace sluice {
namespace {

// Which descriptors are open, one bit each. Higher numbers are not tracked: children inherit them.
constexpr size_t word_bits = 64, most_noted = size_t{1} << 16;
constinit std::atomic<uint64_t> noted[most_noted / word_bits];

// What distinguishes an open file from all others. All zero: not known. (Files that the kernel
// gives no inode of their own, as those of eventfd, look alike.)
struct OpenFile {
  uint64_t device = 0, inode = 0;
  bool operator==(const OpenFile&) const = default;
};

// Those of the noted descriptors.
constinit struct { std::atomic<uint64_t> device, inode; } files[most_noted];

// Calls only async-signal-safe functions. 0, or an errno value, negated.
int find_file(int fd, OpenFile* file) {
  struct stat about {};
  const int error = system_call([&] { return fstat(fd, &about); });
  if (error == 0) *file = {about.st_dev, about.st_ino};
  return error;
}

// Whether the number still refers to the file that Sluice opened: the program may have closed all
// descriptors, and opened files of its own.
bool is_own(int fd) {
  const auto at = static_cast<size_t>(fd);
  OpenFile now, opened;
  if (at < most_noted) opened = {files[at].device.load(), files[at].inode.load()};
  if (opened == OpenFile{}) return true;
  const int error = find_file(fd, &now);
  return error == 0 ? now == opened : error != -EBADF;
}

void note_file(int fd) {
  OpenFile file;
  (void)find_file(fd, &file);
  files[fd].device.store(file.device);
  files[fd].inode.store(file.inode);
}

void note(int fd, bool is_open) {
  if (fd < 0 || static_cast<size_t>(fd) >= most_noted) return;
  const size_t at = static_cast<size_t>(fd);
  if (is_open) note_file(fd);
  const uint64_t bit = uint64_t{1} << at % word_bits;
  if (is_open) {
    noted[at / word_bits].fetch_or(bit, std::memory_order_relaxed);
  } else {
    noted[at / word_bits].fetch_and(~bit, std::memory_order_relaxed);
  }
}

// Runs in the child before fork() returns there, so it calls only async-signal-safe functions.
void empty_all() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (size_t i = 0; i < std::size(noted); ++i) {
    for (uint64_t word = noted[i].load(std::memory_order_relaxed); word != 0; word &= word - 1) {
      const int fd = static_cast<int>(i * word_bits) + std::countr_zero(word);
      if (!is_own(fd)) continue;
      if (nothing < 0) {
        close(fd);
      } else {
        dup3(nothing, fd, O_CLOEXEC);
      }
    }
  }
  if (nothing >= 0) close(nothing);
}

void leave_all_to_parents() {
  static constinit std::atomic<bool> done{false};
  if (!done.exchange(true)) (void)pthread_atfork(nullptr, nullptr, empty_all);
}

int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = system_call([&] { return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); });
  close(fd);
  return moved;
}

}  // namespace

Descriptor::Descriptor(int fd) : fd_(above_standard(fd)) {
  if (fd_ < 0) return;
  leave_all_to_parents();
  note(fd_, true);
}

void Descriptor::close() {
  if (fd_ < 0) return;
  const bool is_ours = is_own(fd_);
  note(fd_, false);
  if (is_ours) ::close(fd_);
  fd_ = -1;
}

bool Descriptor::is_taken() const { return fd_ >= 0 && !is_own(fd_); }

}  // namespace sluice
