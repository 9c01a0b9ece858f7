// SPDX-License-Identifier: BSD-3-Clause
#include "transports/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "src/base/system_call.h"

namespace sluice {
namespace {

// Which descriptors are open, one bit each. Higher numbers are not tracked: children inherit them.
constexpr size_t word_bits = 64, most_noted = size_t{1} << 16;
constinit std::atomic<uint64_t> noted[most_noted / word_bits];

void note(int fd, bool is_open) {
  if (fd < 0 || static_cast<size_t>(fd) >= most_noted) return;
  const size_t at = static_cast<size_t>(fd);
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
  note(fd_, false);
  ::close(std::exchange(fd_, -1));
}

}  // namespace sluice
