// SPDX-License-Identifier: BSD-3-Clause
//
// Links in shared memory: how the death and the end of the peer are noticed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "tests/unit/support/stopwatch.h"
#include "tests/unit/transports/upgrade_rig.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// A rank in a child process, which runs `life` and then ends.
class Mortal {
 public:
  using Life = std::function<void(Endpoint&, Channel&)>;

  // Ranks 0 and 1 of one team. `here` is in this process; the other runs `life` in the child.
  Mortal(size_t here, const Life& life) {
    int down[2], up[2];
    EXPECT_EQ(pipe(down) + pipe(up), 0);
    child_ = fork();
    if (child_ == 0) {
      live(1 - here, down[0], up[1], life);
      _exit(0);
    }
    endpoint = shm()(Ranks::process(here));
    tell(down[1], endpoint->address());
    channel = open(*endpoint, 1 - here, hear(up[0]));
    for (const int fd : {down[0], down[1], up[0], up[1]}) close(fd);
  }
  ~Mortal() {
    ::kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Mortal(const Mortal&) = delete;
  Mortal& operator=(const Mortal&) = delete;

  void kill() const { ::kill(child_, SIGKILL); }
  // When this returns, the child's sockets are closed.
  void await_death() const {
    siginfo_t how;
    waitid(P_PID, static_cast<id_t>(child_), &how, WEXITED | WNOWAIT);
  }

  // Exchanges messages until the link has left its socket.
  static void meet(Endpoint& at, Channel& to) {
    for (uint32_t call = 0; call < 6; ++call) {
      Message send({call, 0, 0, 0}, 8), receive({call, 0, 0, 0}, 8);
      receive.receive(to);
      send.send(to);
      if (!wait_for(at, [&] { return send.done() && receive.done(); })) _exit(1);
    }
  }

  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Channel> channel;

 private:
  static void live(size_t rank, int from, int to, const Life& life) {
    auto endpoint = shm()(Ranks::process(rank));
    tell(to, endpoint->address());
    auto channel = open(*endpoint, 1 - rank, hear(from));
    meet(*endpoint, *channel);
    life(*endpoint, *channel);
    _exit(0);
  }
  static std::unique_ptr<Channel> open(Endpoint& endpoint, size_t peer,
                                       const std::vector<std::byte>& address) {
    auto opened =
        endpoint.open({Ranks::process(0), 1}, {Ranks::process(peer), address, Ranks::label(peer)});
    return std::move(*opened);
  }
  static void tell(int pipe, const std::vector<std::byte>& address) {
    const uint64_t size = address.size();
    if (write(pipe, &size, sizeof(size)) < 0 || write(pipe, address.data(), size) < 0) _exit(1);
  }
  static std::vector<std::byte> hear(int pipe) {
    uint64_t size = 0;
    if (read(pipe, &size, sizeof(size)) != ssize_t{sizeof(size)}) return {};
    std::vector<std::byte> address(size);
    if (read(pipe, address.data(), size) < 0) return {};
    return address;
  }

  pid_t child_;
};

// Kills the child after 0.1 s, or waits until it ends by itself, and notes the time of its death.
class Witness {
 public:
  Witness(const Mortal& other, bool kills)
      : thread_([this, &other, kills] {
          if (kills) std::this_thread::sleep_for(milliseconds(100));
          if (kills) other.kill();
          other.await_death();
          since_death_.emplace();
          dead_ = true;
        }) {}
  ~Witness() { thread_.join(); }

  std::chrono::nanoseconds since_death() const {
    return dead_ ? since_death_->elapsed() : std::chrono::nanoseconds();
  }

 private:
  std::optional<Stopwatch> since_death_;
  std::atomic<bool> dead_{false};
  std::thread thread_;
};

void stay(Endpoint& at, Channel&) {
  while (true) at.wait(seconds(1));
}

class Death : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  size_t here() const { return std::get<0>(GetParam()); }
  // Waits by sleeping, or by polling.
  bool wait_here(Endpoint& at, const std::function<bool()>& holds) const {
    if (std::get<1>(GetParam())) return wait_for(at, holds);
    const auto end = Clock::now() + seconds(30);
    while (!holds() && Clock::now() < end) at.progress();
    return holds();
  }
};

TEST_P(Death, IsNoticed) {
  Mortal other(here(), stay);
  Mortal::meet(*other.endpoint, *other.channel);
  ASSERT_STREQ(other.channel->carrier(), "shm");
  Message receive({100, 0, 0, 0}, 8);
  receive.receive(*other.channel);
  const Witness witness(other, true);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return receive.done(); }));
  EXPECT_TRUE(is_prompt(witness.since_death(), seconds(1)));
  EXPECT_EQ(receive.code(), Code::peer_lost);
}

TEST_P(Death, IsNoticedWhileTheRingIsFull) {
  Mortal other(here(), stay);
  Mortal::meet(*other.endpoint, *other.channel);
  Message send({100, 0, 0, 0}, 1000000);
  send.fill().send(*other.channel);
  ASSERT_FALSE(send.done());
  const Witness witness(other, true);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return send.done(); }));
  EXPECT_TRUE(is_prompt(witness.since_death(), seconds(1)));
  EXPECT_EQ(send.code(), Code::peer_lost);
}

// Data sent before death must arrive.
TEST_P(Death, LastWordsAreHeard) {
  constexpr size_t bytes = 200000;
  Mortal other(here(), [](Endpoint&, Channel& to) {
    Message send({100, 0, 0, 0}, bytes);
    send.fill().send(to);
    _exit(send.done() ? 0 : 1);
  });
  Mortal::meet(*other.endpoint, *other.channel);
  std::this_thread::sleep_for(milliseconds(100));
  Message receive({100, 0, 0, 0}, bytes), more({101, 0, 0, 0}, 8);
  receive.receive(*other.channel);
  more.receive(*other.channel);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return receive.done() && more.done(); }));
  EXPECT_TRUE(receive.ok() && receive.holds_pattern()) << receive.why();
  EXPECT_EQ(more.code(), Code::peer_lost);
}

// A child of the dead rank lives on, with copies of all its descriptors.
TEST_P(Death, IsNoticedThoughAChildLivesOn) {
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  Mortal other(here(), [&](Endpoint&, Channel&) {
    int born[2];
    if (pipe(born) != 0) _exit(1);
    char byte = 0;
    if (fork() == 0) {
      close(alive[1]);
      _exit(write(born[1], &byte, 1) == 1 && read(alive[0], &byte, 1) == 0 ? 0 : 1);
    }
    _exit(read(born[0], &byte, 1) == 1 ? 0 : 1);
  });
  close(alive[0]);
  Mortal::meet(*other.endpoint, *other.channel);
  Message receive({100, 0, 0, 0}, 8);
  receive.receive(*other.channel);
  const Witness witness(other, false);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return receive.done(); }));
  EXPECT_TRUE(is_prompt(witness.since_death(), seconds(1)));
  EXPECT_EQ(receive.code(), Code::peer_lost) << receive.why();
  close(alive[1]);
}

TEST_P(Death, AGoodbyeIsNone) {
  Mortal other(here(), [](Endpoint& at, Channel&) { at.say_bye(); });
  Mortal::meet(*other.endpoint, *other.channel);
  Message receive({100, 0, 0, 0}, 8);
  receive.receive(*other.channel);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return receive.done(); }));
  EXPECT_NE(receive.why().find("finished"), std::string::npos) << receive.why();
}

INSTANTIATE_TEST_SUITE_P(Sides, Death, testing::Combine(testing::Values(0, 1), testing::Bool()));

}  // namespace
}  // namespace sluice
