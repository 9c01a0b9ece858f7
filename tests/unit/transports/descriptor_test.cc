// SPDX-License-Identifier: BSD-3-Clause
#include "transports/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tests/unit/support/child.h"

namespace sluice {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// One or more of standard input, output and error are closed.
TEST(Descriptor, LeavesTheStandardOnesAlone) {
  for (int closed = 1; closed < 8; ++closed) {
    const int failures = in_child([&] {
      for (int fd = 0; fd <= 2; ++fd) {
        if (closed >> fd & 1) close(fd);
      }
      const Descriptor zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
      char byte = 1;
      int wrong = zero.fd() <= 2 || read(zero.fd(), &byte, 1) != 1 || byte != 0;
      wrong += (fcntl(zero.fd(), F_GETFD) & FD_CLOEXEC) == 0;
      for (int fd = 0; fd <= 2; ++fd) wrong += is_open(fd) == (closed >> fd & 1);
      return wrong;
    });
    EXPECT_EQ(failures, 0) << "closed: " << closed;
  }
}

TEST(Descriptor, TellsWhyThereIsNone) {
  const Descriptor none(open("/nowhere", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(none);
}

TEST(Descriptor, IsClosedOnce) {
  Descriptor first(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const int fd = first.fd();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.fd(), fd);
  second.close();
  EXPECT_FALSE(is_open(fd));
}

// In the child, the descriptor's number is still in use.
TEST(Descriptor, IsNotForChildren) {
  const Descriptor zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(in_child([&] {
              char byte = 1;
              return is_open(zero.fd()) && read(zero.fd(), &byte, 1) == 0 ? 1 : 0;
            }),
            1);
  char byte = 1;
  EXPECT_EQ(read(zero.fd(), &byte, 1), 1);
}

// The program closes Sluice's descriptor, and opens a file of its own there.
class TakenDescriptor : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(file_, 0);
    ASSERT_EQ(dup2(file_, number_), number_);
  }
  ~TakenDescriptor() override {
    close(file_);
    if (is_open(number_)) close(number_);
  }
  off_t size() const {
    struct stat about {};
    return fstat(file_, &about) == 0 ? about.st_size : -1;
  }

  const int file_ = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  Descriptor ours_{open("/dev/zero", O_RDONLY | O_CLOEXEC)};
  const int number_ = ours_.fd();
};

TEST_F(TakenDescriptor, StaysOpen) {
  EXPECT_TRUE(ours_.is_taken());
  ours_.close();
  EXPECT_FALSE(ours_);
  EXPECT_TRUE(is_open(number_));
}

TEST_F(TakenDescriptor, IsForChildren) {
  EXPECT_EQ(in_child([&] { return write(number_, "child", 5) == 5 ? 0 : 1; }), 0);
  EXPECT_EQ(size(), 5);
}

TEST_F(TakenDescriptor, IsTheProgramsAlsoIfClosed) {
  close(number_);
  EXPECT_TRUE(ours_.is_taken());
  ours_.close();
  EXPECT_FALSE(is_open(number_));
}

}  // namespace
}  // namespace sluice
