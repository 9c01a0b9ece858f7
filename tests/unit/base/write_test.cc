// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/unit/support/child.h"

namespace sluice {
namespace {

constexpr rlim_t most = 10;

bool is_blocked(int which) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, which) == 1;
}

bool is_pending(int which) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, which) == 1;
}

int write_too_much(int file) {
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return -1;
  const int error = write_all(file, std::string(2 * most, 'x'));
  return lseek(file, 0, SEEK_CUR) == most ? error : -1;
}

TEST(Writing, EndsAtTheLimitOfAFilesSize) {
  FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int status = in_child([&] {
    const int error = write_too_much(fileno(file));
    return is_blocked(SIGXFSZ) || is_pending(SIGXFSZ) ? -1 : error;
  });
  EXPECT_EQ(status, EFBIG);
  std::fclose(file);
}

TEST(Writing, EndsWhereNobodyReads) {
  const int status = in_child([] {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
    close(ends[0]);
    const int error = write_all(ends[1], "text");
    return is_blocked(SIGPIPE) || is_pending(SIGPIPE) ? -1 : error;
  });
  EXPECT_EQ(status, EPIPE);
}

// The program's own are neither taken nor let through.
TEST(Writing, LeavesTheProgramItsSignals) {
  FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int status = in_child([&] {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &own, nullptr);
    raise(SIGXFSZ);
    const int error = write_too_much(fileno(file));
    return is_blocked(SIGXFSZ) && is_pending(SIGXFSZ) ? error : -1;
  });
  EXPECT_EQ(status, EFBIG);
  std::fclose(file);
}

}  // namespace
}  // namespace sluice
