// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/system_call.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace sluice {
namespace {

// A system call that ends so, one time after the other: with a number of bytes, or an errno value,
// negated.
struct Played {
  std::vector<int> ends;
  size_t calls = 0;

  int operator()() {
    const int end = ends.at(calls++);
    if (end >= 0) return end;
    errno = -end;
    return -1;
  }
  int result(int* first = nullptr) {
    return system_call([this] { return (*this)(); }, first);
  }
};

TEST(SystemCalls, AreMadeOnceIfTheySucceed) {
  Played call{{7}};
  int first = 0;
  EXPECT_EQ(call.result(&first), 7);
  EXPECT_EQ(first, 0);
}

TEST(SystemCalls, AreMadeAgainWhenASignalInterruptsThem) {
  Played call{{-EINTR, -EINTR, 7}};
  EXPECT_EQ(call.result(), 7);
}

TEST(SystemCalls, HaveNothingYet) {
  for (const int error : {EAGAIN, EINPROGRESS, EALREADY}) {
    Played call{{-error}};
    EXPECT_EQ(call.result(), -error);
  }
}

// What a signal handler has left in errno is gone the second time.
TEST(SystemCalls, FailIfTheyFailTwice) {
  EXPECT_EQ((Played{{-ENOENT, -EAGAIN}}.result()), -EAGAIN);
  EXPECT_EQ((Played{{-ENOENT, 7}}.result()), 7);
  EXPECT_EQ((Played{{-ENOENT, 0}}.result()), 0);
  EXPECT_EQ((Played{{-ENOENT, -EINTR, -EAGAIN}}.result()), -EAGAIN);
  EXPECT_EQ((Played{{-EBADF, -EBADF}}.result()), -EBADF);
  EXPECT_EQ((Played{{-ENOENT, -EBADF}}.result()), -EBADF);
}

TEST(SystemCalls, TellWhatIsReportedOnce) {
  int first = 0;
  EXPECT_EQ((Played{{-ECONNRESET, -EPIPE}}.result(&first)), -EPIPE);
  EXPECT_EQ(first, ECONNRESET);
}

TEST(SystemCalls, HaveErrorsWithTheirNumber) {
  const Status status = system_error("no socket", EMFILE);
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_EQ(status.message(), "no socket: Too many open files");
  EXPECT_EQ(status.with("eth0").error(), EMFILE);
  EXPECT_EQ(Status().error(), 0);
}

}  // namespace
}  // namespace sluice
