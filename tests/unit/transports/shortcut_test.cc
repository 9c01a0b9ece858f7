// SPDX-License-Identifier: BSD-3-Clause
//
// Links that are upgraded to shared memory: when they are, when they stay on sockets, what still
// uses the socket, wake-ups, and death of the peer.
#include "transports/shm/shortcut.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <optional>

#include "tests/unit/support/stopwatch.h"
#include "tests/unit/transports/tcp_played.h"
#include "transports/shm/ring.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

TcpOptions with_shortcuts() {
  TcpOptions options;
  options.shortcuts = make_shm_shortcuts();
  return options;
}

MakeEndpoint shm() { return tcp(with_shortcuts()); }

std::string carriers(Ranks& ranks, uint32_t team = 1) {
  return ranks.channel(0, 1, team).carrier() + std::string(" ") +
         ranks.channel(1, 0, team).carrier();
}

bool exchange_some(Ranks& ranks, int times = 4) {
  bool good = true;
  for (int i = 0; i < times; ++i) good &= exchange(ranks);
  return good;
}

// The bytes that all sockets of this process have sent so far.
uint64_t bytes_over_sockets() {
  uint64_t bytes = 0;
  for (const int fd : descriptors()) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) bytes += info.tcpi_bytes_sent;
  }
  return bytes;
}

// The addresses at which this process maps ring memory.
std::vector<std::byte*> mappings() {
  std::vector<std::byte*> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:sluice") == std::string::npos) continue;
    found.push_back(reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16)));
  }
  return found;
}

TEST(Shortcut, IsTakenAfterAFewMessages) {
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  EXPECT_EQ(carriers(ranks), "shm shm");
  const uint64_t before = bytes_over_sockets();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(exchange(ranks, 1, 100000));
  EXPECT_EQ(bytes_over_sockets(), before);
}

TEST(Shortcut, LeavesNothing) {
  const std::set<int> before = descriptors();
  {
    Ranks plain(tcp(), 3);
    ASSERT_TRUE(exchange_some(plain));
    const size_t with_sockets = descriptors().size();
    Ranks ranks(shm(), 3);
    ASSERT_TRUE(exchange_some(ranks));
    ASSERT_EQ(carriers(ranks), "shm shm");
    EXPECT_EQ(descriptors().size() - with_sockets, with_sockets - before.size());
    EXPECT_EQ(mappings().size(), 2U);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(mappings().size(), 0U);
}

TEST(Shortcut, WhileOfferedNothingIsInherited) {
  const std::set<int> before = descriptors();
  Ranks ranks(shm(), 2);
  Message send({1, 0, 0, 0}, 8), receive({1, 0, 0, 0}, 8), back({1, 0, 0, 0}, 8);
  send.send(ranks.channel(0, 1));
  receive.receive(ranks.channel(1, 0));
  back.receive(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return receive.done() && mappings().size() == 1; }));
  for (const int fd : descriptors()) {
    EXPECT_TRUE(before.contains(fd) || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) << fd;
  }
}

// A rank that only sends or only receives also upgrades its link.
TEST(Shortcut, OneWayTrafficTakesItToo) {
  for (const size_t from : {0, 1}) {
    Ranks ranks(shm(), 2);
    for (uint32_t call = 0; call < 100; ++call) {
      Message send({call, 0, 0, 0}, 8), receive({call, 0, 0, 0}, 8);
      send.fill().send(ranks.channel(from, 1 - from));
      receive.receive(ranks.channel(1 - from, from));
      ASSERT_TRUE(ranks.drive([&] { return send.done() && receive.done(); }));
      ASSERT_TRUE(receive.ok() && receive.holds_pattern());
    }
    EXPECT_STREQ(ranks.channel(from, 1 - from).carrier(), "shm") << from;
  }
}

// Frames of all sizes are in flight in both directions when each side leaves the socket.
class ShiftUnderTraffic : public testing::TestWithParam<size_t> {};

TEST_P(ShiftUnderTraffic, NothingIsLostOrSwapped) {
  const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed + GetParam());
  for (int round = 0; round < 30; ++round) {
    TcpOptions options = with_shortcuts();
    options.socket_buffer = GetParam();
    Ranks ranks(tcp(options), 2);
    Messages messages;
    std::vector<std::pair<size_t, uint32_t>> order;
    for (uint32_t i = 0; i < 60; ++i) {
      const size_t bytes = random() % (i % 7 == 0 ? 200000 : 300);
      for (const size_t rank : {0, 1}) {
        add(messages, {1, i, static_cast<uint32_t>(rank), 0}, bytes).fill();
        add(messages, {1, i, static_cast<uint32_t>(rank), 0}, bytes);
      }
    }
    // Messages 4i and 4i+2 are sends of ranks 0 and 1; 4i+1 and 4i+3 are their receives.
    std::vector<size_t> turns(messages.size());
    std::iota(turns.begin(), turns.end(), 0);
    std::shuffle(turns.begin(), turns.end(), random);
    for (const size_t turn : turns) {
      const size_t sender = turn % 4 / 2;
      if (turn % 2 == 0) {
        messages[turn]->send(ranks.channel(sender, 1 - sender));
      } else {
        messages[turn]->receive(ranks.channel(1 - sender, sender));
      }
      if (random() % 3 == 0) ranks.at(random() % 2).progress();
    }
    ASSERT_TRUE(ranks.drive(messages));
    for (auto& message : messages) {
      ASSERT_TRUE(message->ok() && message->holds_pattern()) << message->why();
    }
    ASSERT_TRUE(exchange_some(ranks));
    EXPECT_EQ(carriers(ranks), "shm shm");
  }
}

INSTANTIATE_TEST_SUITE_P(Buffers, ShiftUnderTraffic, testing::Values(0, 4096, 65536));

// One side cannot make, or cannot attach, the shared memory.
class Unable final : public ShortcutMaker {
 public:
  Unable(bool makes, bool attaches) : makes_(makes), attaches_(attaches) {}
  const char* name() const override { return "unable"; }
  Result<Made> make(int socket) override {
    if (!makes_) return Status(Code::unavailable, "no");
    return real_->make(socket);
  }
  Result<std::unique_ptr<Shortcut>> attach(std::span<const std::byte> offer, int socket) override {
    if (!attaches_) return Status(Code::unavailable, "no");
    return real_->attach(offer, socket);
  }

 private:
  const std::shared_ptr<ShortcutMaker> real_ = make_shm_shortcuts();
  const bool makes_, attaches_;
};

class OneSideCant : public testing::TestWithParam<int> {};

TEST_P(OneSideCant, AndTheLinkStaysOnItsSocket) {
  std::shared_ptr<ShortcutMaker> makers[2] = {make_shm_shortcuts(), make_shm_shortcuts()};
  if (GetParam() == 0) makers[0] = nullptr;
  if (GetParam() == 1) makers[1] = nullptr;
  if (GetParam() == 2) makers[0] = std::make_shared<Unable>(false, true);
  if (GetParam() == 3) makers[1] = std::make_shared<Unable>(true, false);
  const std::set<int> before = descriptors();
  size_t rank = 0;
  Ranks ranks(
      [&](const ProcessId& self) {
        TcpOptions options;
        options.shortcuts = makers[rank++];
        return tcp(options)(self);
      },
      2);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(exchange(ranks, 1, 10000));
  EXPECT_EQ(carriers(ranks), "tcp tcp");
  EXPECT_EQ(mappings().size(), 0U);
  EXPECT_GT(bytes_over_sockets(), 400000U);
}

INSTANTIATE_TEST_SUITE_P(Sides, OneSideCant, testing::Range(0, 4));

// Two ranks that sleep whenever they find nothing to do. A lost wake-up shows as a sleep of a
// quarter of a second.
class Sleepers : public testing::TestWithParam<size_t> {};

TEST_P(Sleepers, AreWoken) {
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  ASSERT_EQ(carriers(ranks), "shm shm");
  const size_t bytes = GetParam();
  const uint32_t rounds = bytes > 10000 ? 100 : 1000;
  std::atomic<uint32_t> failures{0}, long_sleeps{0};
  std::atomic<int64_t> held_up_ns{0};
  const auto run = [&](size_t rank) {
    held_up_ns -= held_up().count();
    Channel& channel = ranks.channel(rank, 1 - rank);
    const auto await = [&](Message& message) {
      while (!message.done()) {
        if (ranks.at(rank).progress()) continue;
        const auto begin = Clock::now();
        ranks.at(rank).wait(seconds(1));
        long_sleeps += Clock::now() - begin > milliseconds(200);
      }
      failures += !message.ok() || !message.holds_pattern();
    };
    for (uint32_t call = 10; call < 10 + rounds && failures == 0; ++call) {
      Message receive({call, 0, 0, 0}, bytes), send({call, 0, 0, 0}, bytes);
      receive.receive(channel);
      if (rank == 0) await(receive);
      send.fill().send(channel);
      await(send);
      if (rank == 1) await(receive);
    }
    held_up_ns += held_up().count();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(failures, 0U);
  // Without a processor, a rank or its peer sleeps longer.
  EXPECT_LT(long_sleeps, rounds / 10 + held_up_ns / 100'000'000);
}

INSTANTIATE_TEST_SUITE_P(Bytes, Sleepers, testing::Values(8, 1000000));

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

TEST_P(Death, IsNoticedWithinASecond) {
  Mortal other(here(), stay);
  Mortal::meet(*other.endpoint, *other.channel);
  ASSERT_STREQ(other.channel->carrier(), "shm");
  Message receive({100, 0, 0, 0}, 8);
  receive.receive(*other.channel);
  const Witness witness(other, true);
  EXPECT_TRUE(wait_here(*other.endpoint, [&] { return receive.done(); }));
  EXPECT_LT(witness.since_death(), seconds(1));
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
  EXPECT_LT(witness.since_death(), seconds(1));
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
  EXPECT_LT(witness.since_death(), seconds(1));
  EXPECT_EQ(receive.code(), Code::peer_lost) << receive.why();
  close(alive[1]);
}

// A forked child uses the sockets' numbers for something else; the parent's links must not change.
TEST(Shortcut, AChildHasNoSockets) {
  const std::set<int> before = descriptors();
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  const pid_t child = fork();
  if (child == 0) {
    int sockets = 0;
    struct stat about {};
    for (const int fd : descriptors()) {
      sockets += !before.contains(fd) && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
    }
    _exit(sockets);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(exchange_some(ranks));
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

// The peer can write to the shared memory, so counts found there must be checked.
TEST(Shortcut, ACountThatLiesEndsTheLink) {
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  ASSERT_EQ(carriers(ranks), "shm shm");
  Message receive({9, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  auto* const first = reinterpret_cast<Ring*>(mappings().at(0));
  ASSERT_GT(first->written.load(), 0U);
  first->written = ~uint64_t{0};
  ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::peer_lost);
}

// An endpoint that may upgrade links, and a simulated peer.
class ShortcutPlayed : public TcpPlayed {
 protected:
  ShortcutPlayed() : TcpPlayed(with_shortcuts()) {}

  void offer(Stranger& peer, const std::vector<std::byte>& words) {
    Frame frame{FrameType::offer, false, static_cast<uint32_t>(words.size())};
    say(peer, frame);
    peer.say(words.data(), words.size());
  }
  // Reads the next message, with all that comes before it.
  void let_read(Stranger& peer, uint32_t ordinal) {
    Message message({1, ordinal, 0, 0}, 0);
    say(peer, data(0, ordinal));
    message.receive(*channel_);
    EXPECT_TRUE(done_in(message, seconds(5)));
    status_ = message.operation.status;
  }
  // An offer made by this process with the real implementation.
  ShortcutMaker::Made made(int socket) {
    auto made = make_shm_shortcuts()->make(socket);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  Status status_;
};

TEST_F(ShortcutPlayed, OffersThatMakeNoSenseAreDeclined) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  auto real = made(peer.fd());
  std::vector<std::vector<std::byte>> offers{{}, {std::byte{1}}};
  offers.push_back(real.offer);
  offers.back()[8] ^= std::byte{1};  // another inode
  offers.push_back(real.offer);
  offers.back().push_back(std::byte{0});
  offers.emplace_back(size_t{5000}, std::byte{7});
  offers.push_back(real.offer);
  offers.back()[16] = std::byte{1};  // a name
  offers.push_back(real.offer);
  offers.back().back() ^= std::byte{1};  // another descriptor
  uint32_t ordinal = 1;
  for (const auto& words : offers) {
    offer(peer, words);
    let_read(peer, ordinal++);
    EXPECT_TRUE(status_.ok()) << status_.message();
    EXPECT_EQ(hear(peer).type, FrameType::decline) << ordinal;
  }
  EXPECT_EQ(mappings().size(), 1U);
}

TEST_F(ShortcutPlayed, ATrueOfferIsTaken) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  auto real = made(peer.fd());
  offer(peer, real.offer);
  let_read(peer, 1);
  EXPECT_EQ(hear(peer).type, FrameType::shift);
  EXPECT_EQ(mappings().size(), 2U);
  say(peer, {FrameType::shift});
  real.shortcut->take_socket();
  std::array<std::byte, Frame::bytes> bytes{};
  data(0, 7).encode(bytes.data());
  const iovec run{bytes.data(), bytes.size()};
  EXPECT_EQ(real.shortcut->write({&run, 1}).bytes, bytes.size());
  Message message({1, 7, 0, 0}, 0);
  message.receive(*channel_);
  EXPECT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok());
}

TEST_F(ShortcutPlayed, WhatIsOutOfTurnEndsTheLink) {
  for (const FrameType type : {FrameType::shift, FrameType::decline, FrameType::offer}) {
    channel_.reset();
    endpoint_ = tcp(with_shortcuts())(Ranks::process(1));
    const AddressBlob at = address_of(*endpoint_);
    channel_ = open(team_);
    Stranger peer(at.entries[0]);
    Greeting hello = greeting();
    hello.key = at.key;
    peer.say(hello);
    auto real = made(peer.fd());
    if (type == FrameType::offer) {
      offer(peer, real.offer);
      offer(peer, real.offer);
    } else {
      say(peer, {type});
    }
    let_read(peer, 1);
    EXPECT_EQ(status_.code(), Code::internal) << status_.message();
  }
}

// Frames of a peer that has not proved that it knows the key are not processed.
TEST_F(ShortcutPlayed, AStrangersOfferIsNotLookedAt) {
  Stranger peer(blob_.entries[0]);
  auto real = made(peer.fd());
  Greeting hello = greeting();
  hello.key = {};
  peer.say(hello);
  Message message({1, 0, 0, 0}, 0);
  message.receive(*channel_);
  progress_a_while();
  EXPECT_TRUE(peer.sent_away());
  Stranger second(blob_.entries[0]);
  offer(second, real.offer);
  progress_a_while();
  EXPECT_TRUE(second.sent_away());
  EXPECT_EQ(mappings().size(), 1U);
}

}  // namespace
}  // namespace sluice
