// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts that are silent on a connection during a call: whether they are dead shows on another one.
#include "transports/link/watch.h"

#include <gtest/gtest.h>

#include "tests/unit/transports/breaks.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Watched : public testing::Test {
 protected:
  static constexpr seconds limit{3};
  static TcpOptions options() {
    TcpOptions made;
    made.interfaces = "127.0.0.0/8";
    made.peer_timeout = limit;
    return made;
  }
  Watched() : ranks_(tcp(options()), 2) {}
  void SetUp() override {
    ASSERT_TRUE(exchange(ranks_));
    sent_.fill();
  }
  // Sends until it has failed, or has connected once more.
  void send_until_asked() {
    std::vector<pollfd> listeners;
    for (const int fd : listeners_of(ranks_, 1)) listeners.push_back({fd, POLLIN, 0});
    ASSERT_FALSE(listeners.empty());
    sent_.send(ranks_.channel(0, 1));
    const auto is_over = [&] {
      return awaited_.done() || poll(listeners.data(), listeners.size(), 0) > 0;
    };
    ASSERT_TRUE(wait_for(ranks_.at(0), is_over));
  }

  Ranks ranks_;
  Message sent_{{5, 0, 0, 0}, 100}, awaited_{{6, 0, 0, 0}, 100}, got_{{5, 0, 0, 0}, 100};
};

// The network is back, but the kernel has not tried again yet. (Here other connections pass, and
// this one does after that.)
TEST_F(Watched, AHostThatAnswersElsewhereIsNotDead) {
  const Socket end(fcntl(end_of(ranks_, 1), F_DUPFD_CLOEXEC, 0));
  awaited_.receive(ranks_.channel(0, 1));
  {
    const Outage outage(end.fd());
    outage.keep_probing();  // by itself it gives up after some 7 s, which may be before it is asked
    send_until_asked();
    EXPECT_FALSE(awaited_.done()) << awaited_.why();
  }
  got_.receive(ranks_.channel(1, 0));
  ASSERT_TRUE(ranks_.drive([&] { return got_.done() && sent_.done(); }));
  EXPECT_TRUE(got_.ok() && sent_.ok()) << got_.why();
}

TEST_F(Watched, AHostThatAnswersNowhereIs) {
  const Socket end(fcntl(end_of(ranks_, 0), F_DUPFD_CLOEXEC, 0));
  const Socket other(fcntl(end_of(ranks_, 1), F_DUPFD_CLOEXEC, 0));
  awaited_.receive(ranks_.channel(0, 1));
  // In both directions: the other host's kernel gives up in time, too, and its reset is lost.
  const Outage outage(end.fd()), others(other.fd());
  cut_off(ranks_, 1);
  sent_.send(ranks_.channel(0, 1));
  ASSERT_TRUE(wait_for(ranks_.at(0), [&] { return awaited_.done(); }));
  EXPECT_EQ(awaited_.code(), Code::peer_lost);
  EXPECT_NE(awaited_.why().find("nor on another connection"), std::string::npos) << awaited_.why();
}

}  // namespace
}  // namespace sluice
