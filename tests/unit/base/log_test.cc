// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/log.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace sluice {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(Level::warning);
    set_log_prefix("");
  }

  static std::string said(Level level, const char* text) {
    testing::internal::CaptureStderr();
    log(level, "%s", text);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, SaysWhoAndHowUrgent) {
  EXPECT_EQ(said(Level::warning, "hello"), "sluice: warning: hello\n");
  set_log_prefix("rank 3 of 8");
  EXPECT_EQ(said(Level::error, "hello"), "sluice: rank 3 of 8: error: hello\n");
  set_log_level(Level::info);
  EXPECT_EQ(said(Level::info, "hello"), "sluice: rank 3 of 8: hello\n");
}

TEST_F(Log, ShowsWhatTheLevelAdmits) {
  EXPECT_EQ(said(Level::info, "hello"), "");
  set_log_level(Level::error);
  EXPECT_EQ(said(Level::warning, "hello"), "");
  set_log_level(Level::debug);
  EXPECT_EQ(said(Level::debug, "hello"), "sluice: debug: hello\n");
  EXPECT_TRUE(log_shown(Level::debug));
}

TEST_F(Log, KeepsToOneLineOfBoundedLength) {
  EXPECT_EQ(said(Level::error, "two\nlines"), "sluice: error: two lines\n");
  const std::string line = said(Level::error, std::string(5000, 'x').c_str());
  EXPECT_EQ(line.size(), 1001U);
  EXPECT_EQ(line.back(), '\n');
  set_log_prefix(std::string(5000, 'p'));
  EXPECT_NE(said(Level::error, "hello").find("p: error: hello\n"), std::string::npos);
}

// A datagram socket receives each write separately.
TEST_F(Log, WritesLinesThatBelongTogetherAtOnce) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  const int saved = dup(STDERR_FILENO);
  dup2(ends[0], STDERR_FILENO);
  set_log_prefix("rank 3");
  set_log_level(Level::info);
  const std::string row(2000, 'x');
  log_lines(Level::info, "head\n" + row + "\nsum\n");
  dup2(saved, STDERR_FILENO);
  std::string got(5000, '?');
  const ssize_t size = recv(ends[1], got.data(), got.size(), MSG_DONTWAIT);
  EXPECT_EQ(got.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0))),
            "\nsluice: rank 3: head\nsluice: rank 3: " + row + "\nsluice: rank 3: sum\n");
  for (const int each : {saved, ends[0], ends[1]}) close(each);
}

TEST_F(Log, LeavesErrnoAlone) {
  errno = ENOENT;
  EXPECT_NE(said(Level::error, "hello"), "");
  errno = ENOENT;
  log(Level::info, "not shown");
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace sluice
