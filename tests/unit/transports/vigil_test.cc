// SPDX-License-Identifier: BSD-3-Clause
//
// When a silent host is taken for dead, and what the kernel is told of it.
#include "transports/link/vigil.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

#include "transports/tcp/socket.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds half{500};

// Looks twice a second, as the driver does.
class Watcher {
 public:
  explicit Watcher(milliseconds limit) : limit_(limit) {}

  // So many looks while the host is silent, of which every second one finds a further try; how long
  // the host has been silent if it is dead then.
  milliseconds look(int looks, milliseconds silence, unsigned tries) {
    milliseconds dead{0};
    for (int i = 0; i < looks && dead == milliseconds(0); ++i) {
      now_ += half;
      dead = vigil_.silence_at(now_, {silence + i * half, tries + static_cast<unsigned>(i) / 2},
                               limit_);
    }
    return dead;
  }
  milliseconds look_once(milliseconds silence, unsigned tries) {
    now_ += half;
    return vigil_.silence_at(now_, {silence, tries}, limit_);
  }
  void compute(milliseconds time) { now_ += time; }
  void rest() { vigil_.rest(); }

 private:
  const milliseconds limit_;
  Vigil vigil_;
  Vigil::Clock::time_point now_ = Vigil::Clock::time_point(hours(1));
};

TEST(Vigil, AHostThatStaysSilentIsDead) {
  Watcher watcher(seconds(3));
  EXPECT_EQ(watcher.look(6, milliseconds(0), 0), milliseconds(0));
  EXPECT_EQ(watcher.look(4, seconds(3), 3), seconds(3));
}

TEST(Vigil, AHostThatAnswersIsNot) {
  Watcher watcher(seconds(3));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(watcher.look(5, milliseconds(0), 0), milliseconds(0));
}

// Silence before the wait does not count.
TEST(Vigil, AnOutageBetweenCallsDoesNotCount) {
  Watcher watcher(seconds(3));
  EXPECT_EQ(watcher.look(2, milliseconds(0), 0), milliseconds(0));
  watcher.compute(minutes(10));
  EXPECT_EQ(watcher.look(6, minutes(10), 40), milliseconds(0));
  EXPECT_GE(watcher.look(3, minutes(10) + seconds(3), 43), seconds(3));
}

// However short it is.
TEST(Vigil, ComputingBetweenCallsDoesNotCount) {
  Watcher watcher(seconds(3));
  EXPECT_EQ(watcher.look(2, milliseconds(0), 0), milliseconds(0));
  watcher.rest();
  watcher.compute(milliseconds(1400));
  EXPECT_EQ(watcher.look_once(milliseconds(1900), 2), milliseconds(0));
  for (int i = 1; i < 6; ++i) {
    const auto silence = milliseconds(1900) + i * half;
    EXPECT_EQ(watcher.look_once(silence, 3 + static_cast<unsigned>(i)), milliseconds(0)) << i;
  }
  EXPECT_EQ(watcher.look_once(milliseconds(4900), 9), seconds(3));
}

// The network may be back, though the kernel has not tried again yet.
TEST(Vigil, ATryMustHaveFailedSinceTheWaitBegan) {
  Watcher watcher(seconds(3));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(watcher.look_once(minutes(10), 12), milliseconds(0)) << i;
  }
  EXPECT_GT(watcher.look_once(minutes(11), 13), seconds(3));
}

// An answer sets the kernel's count back.
TEST(Vigil, TriesAfterAnAnswerCount) {
  Watcher watcher(seconds(3));
  watcher.compute(minutes(1));
  EXPECT_EQ(watcher.look_once(minutes(1), 20), milliseconds(0));
  EXPECT_EQ(watcher.look_once(milliseconds(10), 0), milliseconds(0));
  EXPECT_EQ(watcher.look(4, half, 1), milliseconds(0));
  EXPECT_GE(watcher.look_once(seconds(4), 4), seconds(3));
}

TEST(Vigil, OneLostPacketIsNoDeath) {
  Watcher watcher(seconds(3));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(watcher.look_once(seconds(60), Vigil::least_tries - 1), milliseconds(0)) << i;
  }
}

// A host that answers on another connection has as long again, and until a further try has failed.
TEST(Vigil, APardonedHostHasAsLongAgain) {
  Vigil vigil;
  auto now = Vigil::Clock::time_point(hours(1));
  const auto look = [&](milliseconds silence, unsigned tries) {
    now += half;
    return vigil.silence_at(now, {silence, tries}, seconds(3));
  };
  milliseconds silence(0);
  while (look(silence, 4) == milliseconds(0) && silence < minutes(1)) silence += half;
  EXPECT_EQ(silence, minutes(1)) << "no try failed in this wait";
  ASSERT_GE(look(silence, 5), seconds(3));
  EXPECT_FALSE(vigil.is_pardoned());
  vigil.pardon(now, {silence, 5});
  EXPECT_EQ(look(silence += half, 6), milliseconds(0));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(look(silence += half, 5), milliseconds(0));
  EXPECT_GE(look(silence += half, 6), seconds(3));
  EXPECT_TRUE(vigil.is_pardoned());
  EXPECT_EQ(look(milliseconds(10), 0), milliseconds(0));
  EXPECT_FALSE(vigil.is_pardoned());
}

TEST(Vigil, WithoutALimitNobodyIsDead) {
  Watcher watcher(seconds(0));
  EXPECT_EQ(watcher.look(1000, hours(1), 1000), milliseconds(0));
}

// Six probes in the limit, and the kernel gives up after it.
TEST(Vigil, KeepaliveDerivesFromTheLimit) {
  struct {
    seconds limit;
    int idle, interval, probes;
  } const rows[] = {{seconds(0), 10, 10, 7},  {seconds(3), 1, 1, 6},      {seconds(30), 5, 5, 7},
                    {seconds(60), 10, 10, 7}, {seconds(600), 10, 10, 61}, {hours(24), 10, 10, 127}};
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  for (const auto& row : rows) {
    keep_alive(socket, row.limit);
    const auto is = [&](int option) {
      int value = 0;
      socklen_t size = sizeof(value);
      EXPECT_EQ(getsockopt(socket.fd(), IPPROTO_TCP, option, &value, &size), 0);
      return value;
    };
    EXPECT_EQ(is(TCP_KEEPIDLE), row.idle) << row.limit.count();
    EXPECT_EQ(is(TCP_KEEPINTVL), row.interval) << row.limit.count();
    EXPECT_EQ(is(TCP_KEEPCNT), row.probes) << row.limit.count();
  }
}

TEST(Vigil, ALocalSocketIsNotWatched) {
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  Vigil::Signs signs;
  EXPECT_FALSE(ask_kernel(socket, &signs));
}

}  // namespace
}  // namespace sluice
