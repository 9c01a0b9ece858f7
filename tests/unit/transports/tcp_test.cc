// SPDX-License-Identifier: BSD-3-Clause
//
// What is TCP's own: connections, strangers, deaths, descriptors, memory, threads.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>

#include "tests/unit/transports/rig.h"
#include "transports/tcp/address.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp.h"
#include "transports/tcp/wire.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

MakeEndpoint tcp(const TcpOptions& like = {}) {
  return [like](const ProcessId& self) {
    TcpOptions options = like;
    options.self = self;
    auto made = make_tcp_endpoint(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  };
}

std::set<int> descriptors() {
  std::set<int> open;
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') open.insert(atoi(entry->d_name));
  }
  open.erase(dirfd(directory));
  closedir(directory);
  return open;
}

bool exchange(Ranks& ranks, uint32_t team = 1, size_t bytes = 100) {
  Messages messages;
  add(messages, {1, 0, 0, 0}, bytes).fill().send(ranks.channel(0, 1, team));
  add(messages, {1, 0, 0, 0}, bytes).fill().send(ranks.channel(1, 0, team));
  add(messages, {1, 0, 0, 0}, bytes).receive(ranks.channel(1, 0, team));
  add(messages, {1, 0, 0, 0}, bytes).receive(ranks.channel(0, 1, team));
  bool good = ranks.drive(messages);
  for (auto& message : messages) good &= message->ok() && message->holds_pattern();
  return good;
}

AddressBlob address_of(Endpoint& endpoint) {
  auto blob = AddressBlob::decode(endpoint.address());
  EXPECT_TRUE(blob.ok());
  return *blob;
}

TEST(Tcp, OneConnectionForAllTeams) {
  Ranks ranks(tcp(), 2);
  ASSERT_TRUE(exchange(ranks));
  const size_t before = descriptors().size();
  for (uint32_t team = 2; team < 1000; ++team) ASSERT_TRUE(exchange(ranks, team)) << team;
  EXPECT_EQ(descriptors().size(), before);
}

TEST(Tcp, NoDescriptorIsLeftOpenOrInherited) {
  const std::set<int> before = descriptors();
  {
    TcpOptions options;
    options.threaded = true;
    Ranks ranks(tcp(options), 3);
    ASSERT_TRUE(exchange(ranks));
    for (const int fd : descriptors()) {
      if (before.contains(fd)) continue;
      EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
      EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << fd;
    }
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(Tcp, ListensOnChosenAddressesOnly) {
  const std::set<int> before = descriptors();
  TcpOptions options;
  options.interfaces = "127.0.0.0/8";
  Ranks ranks(tcp(options), 1);
  int listeners = 0;
  for (const int fd : descriptors()) {
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (before.contains(fd)) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) continue;
    sockaddr_in at{};
    size = sizeof(at);
    getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    EXPECT_EQ(ntohl(at.sin_addr.s_addr) >> 24, 127U);
    ++listeners;
  }
  EXPECT_EQ(listeners, 1);
}

TEST(Tcp, ManyShortLivedTeamsLeaveNothing) {
  Ranks ranks(tcp(), 2);
  const auto run = [&](uint32_t first, uint32_t last) {
    for (uint32_t team = first; team < last; ++team) {
      ASSERT_TRUE(exchange(ranks, team, 8)) << team;
      ranks.close(0, 1, team);
      ranks.close(1, 0, team);
    }
  };
  const auto resident = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  run(1, 2000);
  const long before = resident();
  run(2000, 20000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident() - before, 1024);
#else
  EXPECT_GE(resident(), before);
#endif
}

TEST(Tcp, BothSendHundredsOfMegabytesFirst) {
  Ranks ranks(tcp(), 2);
  const size_t bytes = ranks.at(0).caps().max_message;
  const uint32_t count = 256;
  std::vector<std::byte> memory(bytes), sink(bytes);
  Bytes source{memory.data(), bytes}, target{sink.data(), bytes};
  CompletionQueue queue;
  std::vector<Operation> operations(4 * count);
  size_t done = 0;
  const auto post = [&](uint32_t index, uint32_t segment, bool sends, size_t rank) {
    Operation& operation = operations[index];
    operation.tag = {1, 0, segment, 0};
    operation.pieces = {sends ? &source : &target, 1};
    operation.bytes = bytes;
    operation.queue = &queue;
    Channel& channel = ranks.channel(rank, 1 - rank);
    done += sends ? channel.post_send(&operation) : channel.post_recv(&operation);
  };
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (uint32_t i = 0; i < count; ++i) {
    post(i, i, true, 0);
    post(count + i, i, true, 1);
  }
  ranks.drive_a_while();
  for (uint32_t i = 0; i < count; ++i) {
    post(2 * count + i, count - 1 - i, false, 0);
    post(3 * count + i, count - 1 - i, false, 1);
  }
  const auto all = [&] {
    for (Operation* each = queue.take(); each != nullptr; each = each->next) ++done;
    return done == operations.size();
  };
  ASSERT_TRUE(ranks.drive(all));
  for (const Operation& operation : operations) ASSERT_TRUE(operation.status.ok());
  getrusage(RUSAGE_SELF, &after);
  // Two windows, and what the messages themselves take; not 512 MiB.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);
}

// A plain connection to a listener: what strangers are.
class Stranger {
 public:
  explicit Stranger(const AddressBlob::Entry& entry)
      : socket_(::socket(entry.address.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM, 0)) {
    const SocketAddress to = to_socket_address(entry.address, entry.port);
    connected_ =
        connect(socket_.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0;
  }
  bool connected() const { return connected_; }
  int fd() const { return socket_.fd(); }
  void say(const void* bytes, size_t size) {
    EXPECT_EQ(send(socket_.fd(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  void say(const Greeting& greeting, size_t size = Greeting::bytes) {
    std::byte bytes[Greeting::bytes];
    greeting.encode(bytes);
    say(bytes, size);
  }
  // The connection was ended without a byte.
  bool sent_away() const {
    char byte;
    pollfd ready{socket_.fd(), POLLIN, 0};
    return poll(&ready, 1, 0) > 0 && recv(socket_.fd(), &byte, 1, 0) <= 0;
  }

 private:
  Socket socket_;
  bool connected_ = false;
};

class TcpStrangers : public testing::Test {
 protected:
  TcpStrangers() : ranks_(tcp(quick()), 2), blob_(address_of(ranks_.at(1))) {}

  static TcpOptions quick() {
    TcpOptions options;
    options.connect_timeout = milliseconds(300);
    return options;
  }
  Stranger visit() { return Stranger(blob_.entries[0]); }

  Ranks ranks_;
  const AddressBlob blob_;
};

TEST_F(TcpStrangers, RandomBytes) {
  Stranger one = visit(), two = visit();
  one.say("GET / HTTP/1.0\r\n\r\n", 18);
  const std::vector<char> rubbish(100000, 'x');
  two.say(rubbish.data(), rubbish.size());
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_TRUE(one.sent_away());
  EXPECT_TRUE(two.sent_away());
}

TEST_F(TcpStrangers, WhoDoesNotKnowTheKeyOrTheProcess) {
  Key wrong = blob_.key;
  wrong[15] ^= std::byte{1};
  Stranger one = visit(), two = visit();
  one.say(Greeting{wire_version, Ranks::process(0), Ranks::process(1), wrong, 1 << 20});
  two.say(Greeting{wire_version, Ranks::process(0), Ranks::process(7), blob_.key, 1 << 20});
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_TRUE(one.sent_away());
  EXPECT_TRUE(two.sent_away());
}

TEST_F(TcpStrangers, WhoSaysNothingOrHalf) {
  Stranger silent = visit(), half = visit();
  const Greeting greeting{wire_version, Ranks::process(0), Ranks::process(1), blob_.key, 1 << 20};
  half.say(greeting, 40);
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_FALSE(silent.sent_away()) << "has some time";
  // Keeps it looking for connections.
  const Peer nobody{{1, 1}, AddressBlob{1, {}, {}}.encode(), "nobody"};
  auto awaited = ranks_.at(1).open({Ranks::process(0), 9}, nobody);
  ASSERT_TRUE(awaited.ok());
  Message expected({2, 0, 0, 0}, 1);
  expected.receive(**awaited);
  EXPECT_TRUE(ranks_.drive([&] { return silent.sent_away() && half.sent_away(); }, seconds(5)));
}

TEST_F(TcpStrangers, ACrowd) {
  const size_t before = descriptors().size();
  std::vector<Stranger> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(visit());
  ASSERT_TRUE(exchange(ranks_));
  EXPECT_LT(descriptors().size() - before - crowd.size(), 140U);
}

// An endpoint, and a peer of it that is played by hand: the lower process, which connects.
class TcpPlayed : public testing::Test {
 protected:
  TcpPlayed() : endpoint_(tcp()(Ranks::process(1))), blob_(address_of(*endpoint_)) {
    const AddressBlob mine{1, key_, {}};
    auto opened = endpoint_->open(team_, {Ranks::process(0), mine.encode(), "rank 0"});
    EXPECT_TRUE(opened.ok());
    channel_ = std::move(*opened);
  }

  Greeting greeting() const {
    return {wire_version, Ranks::process(0), Ranks::process(1), blob_.key, TcpOptions().window};
  }
  void say(Stranger& peer, const Frame& frame, size_t size = Frame::bytes) {
    std::byte bytes[Frame::bytes];
    frame.encode(bytes);
    peer.say(bytes, size);
  }
  Frame data(uint32_t length, uint32_t ordinal = 0) const {
    return {FrameType::data, true, length, team_, {1, ordinal, 0, 0}, 0};
  }
  bool done_in(Message& message, milliseconds limit) {
    return wait_for(
        *endpoint_, [&] { return message.done(); }, std::chrono::ceil<seconds>(limit));
  }

  const TeamId team_{Ranks::process(0), 1};
  const Key key_{std::byte{42}};
  std::unique_ptr<Endpoint> endpoint_;
  const AddressBlob blob_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(TcpPlayed, AnswersWithThePeersKey) {
  Stranger peer(blob_.entries[0]);
  peer.say(greeting());
  say(peer, data(4));
  peer.say("abcd", 4);
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok()) << message.why();
  std::byte answer[Greeting::bytes];
  ASSERT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
  Greeting back;
  ASSERT_TRUE(back.decode(answer));
  EXPECT_EQ(back.from, Ranks::process(1));
  EXPECT_EQ(back.to, Ranks::process(0));
  EXPECT_EQ(back.key, key_);
}

// After so many bytes of a frame with 100 bytes of payload.
class TcpDeath : public TcpPlayed, public testing::WithParamInterface<size_t> {};

TEST_P(TcpDeath, WithoutGoodbyeIsNoticedAtOnce) {
  auto peer = std::make_unique<Stranger>(blob_.entries[0]);
  peer->say(greeting());
  std::array<std::byte, Frame::bytes + 100> bytes{};
  data(100).encode(bytes.data());
  peer->say(bytes.data(), GetParam());
  Message message({1, 0, 0, 0}, 100), other({1, 1, 0, 0}, 100), later({1, 2, 0, 0}, 100);
  message.receive(*channel_);
  other.receive(*channel_);
  for (int i = 0; i < 20; ++i) {
    endpoint_->wait(milliseconds(1));
    endpoint_->progress();
  }
  EXPECT_FALSE(message.done());
  peer.reset();
  ASSERT_TRUE(done_in(message, seconds(1)));
  EXPECT_EQ(message.code(), Code::peer_lost);
  EXPECT_NE(message.why().find("rank 0 is gone"), std::string::npos) << message.why();
  EXPECT_EQ(other.code(), Code::peer_lost);
  later.send(*channel_);
  EXPECT_EQ(later.code(), Code::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(Cut, TcpDeath, testing::Values(0, 20, Frame::bytes, Frame::bytes + 50));

TEST_F(TcpPlayed, AnotherWindowIsNamed) {
  Greeting other = greeting();
  other.window = 4711;
  Stranger peer(blob_.entries[0]);
  peer.say(other);
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::mismatch);
  EXPECT_NE(message.why().find("4711"), std::string::npos) << message.why();
  EXPECT_NE(message.why().find(std::to_string(TcpOptions().window)), std::string::npos);
}

TEST_F(TcpPlayed, AnotherVersionIsNamedOnBothSides) {
  Greeting other = greeting();
  other.version = 99;
  Stranger peer(blob_.entries[0]);
  peer.say(other);
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::mismatch);
  EXPECT_NE(message.why().find("99"), std::string::npos) << message.why();
  std::byte answer[Greeting::bytes];
  ASSERT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
}

TEST_F(TcpPlayed, MoreThanTheWindowIsRefused) {
  Stranger peer(blob_.entries[0]);
  peer.say(greeting());
  Message message({2, 0, 0, 0}, 4);
  message.receive(*channel_);
  say(peer, data(static_cast<uint32_t>(TcpOptions().window)));
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::internal);
  EXPECT_NE(message.why().find("window"), std::string::npos) << message.why();
}

TEST_F(TcpPlayed, WhatIsNoFrameEndsTheLink) {
  Stranger peer(blob_.entries[0]);
  peer.say(greeting());
  Message message({2, 0, 0, 0}, 4);
  message.receive(*channel_);
  const std::vector<char> rubbish(Frame::bytes, 'x');
  peer.say(rubbish.data(), rubbish.size());
  ASSERT_TRUE(done_in(message, seconds(5)));
  EXPECT_EQ(message.code(), Code::internal);
}

TEST_F(TcpPlayed, OddBytesAtATime) {
  Stranger peer(blob_.entries[0]);
  std::vector<std::byte> bytes(Greeting::bytes + 3 * (Frame::bytes + 10000));
  greeting().encode(bytes.data());
  Messages messages;
  for (uint32_t i = 0; i < 3; ++i) {
    std::byte* const at = bytes.data() + Greeting::bytes + i * (Frame::bytes + 10000);
    data(10000, i).encode(at);
    const Message pattern({1, i, 0, 0}, 10000);
    for (size_t j = 0; j < 10000; ++j) at[Frame::bytes + j] = pattern.expected(j);
    add(messages, {1, i, 0, 0}, 10000, 3).receive(*channel_);
  }
  std::mt19937 random(7);
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - at, 1 + random() % 997);
    peer.say(bytes.data() + at, size);
    at += size;
    endpoint_->progress();
  }
  ASSERT_TRUE(wait_for(*endpoint_, [&] { return Ranks::all_done(messages); }));
  for (auto& message : messages) EXPECT_TRUE(message->ok() && message->holds_pattern());
}

// The peer is another program by now, or none.
class TcpWrongNumber : public testing::Test {
 protected:
  static TcpOptions quick() {
    TcpOptions options;
    options.connect_timeout = milliseconds(300);
    return options;
  }
  TcpWrongNumber() : endpoint_(tcp(quick())(Ranks::process(0))) {
    IpAddress loopback;
    parse_ip("127.0.0.1", &loopback);
    auto listener = listen_on(loopback, {});
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(*listener);
    const AddressBlob blob{host_identity(), {}, {{loopback, 8, listener_.port}}};
    auto opened =
        endpoint_->open({Ranks::process(0), 1}, {Ranks::process(1), blob.encode(), "rank 1"});
    EXPECT_TRUE(opened.ok());
    channel_ = std::move(*opened);
  }
  Code end_of(Message& message) {
    EXPECT_TRUE(wait_for(
        *endpoint_, [&] { return message.done(); }, seconds(5)));
    EXPECT_NE(message.why().find("rank 1"), std::string::npos) << message.why();
    return message.code();
  }
  Socket answer() {
    Socket accepted;
    wait_for(
        *endpoint_, [&] { return bool(accepted = accept_from(listener_.socket)); }, seconds(5));
    return accepted;
  }

  std::unique_ptr<Endpoint> endpoint_;
  Listener listener_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(TcpWrongNumber, Refused) {
  listener_.socket.close();
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  EXPECT_EQ(end_of(message), Code::peer_lost);
  EXPECT_NE(message.why().find("127.0.0.1:" + std::to_string(listener_.port) + " over lo"),
            std::string::npos)
      << message.why();
  EXPECT_NE(message.why().find("refused"), std::string::npos) << message.why();
}

TEST_F(TcpWrongNumber, NoAnswerWithinTheDeadline) {
  // A full backlog drops what comes, as a firewall does.
  ASSERT_EQ(listen(listener_.socket.fd(), 0), 0);
  IpAddress loopback;
  parse_ip("127.0.0.1", &loopback);
  std::vector<Socket> fillers;
  const SocketAddress to = to_socket_address(loopback, listener_.port);
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(std::move(*make_socket(4, {})));
    (void)!connect(fillers.back().fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size);
  }
  const auto begin = Clock::now();
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  EXPECT_EQ(end_of(message), Code::timeout);
  EXPECT_GE(Clock::now() - begin, milliseconds(290));
  EXPECT_LT(Clock::now() - begin, seconds(2));
  EXPECT_NE(message.why().find("firewall"), std::string::npos) << message.why();
}

TEST_F(TcpWrongNumber, AnotherProgram) {
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  const Socket accepted = answer();
  ASSERT_EQ(send(accepted.fd(), "220 mail ready\r\n", 16, MSG_NOSIGNAL), 16);
  EXPECT_EQ(end_of(message), Code::peer_lost);
  EXPECT_NE(message.why().find("another program"), std::string::npos) << message.why();
}

TEST_F(TcpWrongNumber, WhoDoesNotKnowTheKey) {
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  const Socket accepted = answer();
  std::byte bytes[Greeting::bytes];
  Greeting{wire_version, Ranks::process(1), Ranks::process(0), {}, TcpOptions().window}.encode(
      bytes);
  ASSERT_GT(send(accepted.fd(), bytes, sizeof(bytes), MSG_NOSIGNAL), 0);
  EXPECT_EQ(end_of(message), Code::peer_lost);
}

TEST_F(TcpWrongNumber, ClosedAtOnce) {
  Message message({1, 0, 0, 0}, 4);
  message.receive(*channel_);
  answer().close();
  EXPECT_EQ(end_of(message), Code::peer_lost);
}

TEST(Tcp, APeerThatDiedBeforeItConnectedIsNoticed) {
  Ranks ranks(tcp(), 2);
  Message message({1, 0, 0, 0}, 4);
  message.receive(ranks.channel(1, 0));  // rank 0 is the one that connects
  ranks.leave(0);
  const auto begin = Clock::now();
  ASSERT_TRUE(wait_for(
      ranks.at(1), [&] { return message.done(); }, seconds(10)));
  EXPECT_LT(Clock::now() - begin, seconds(3));
  EXPECT_EQ(message.code(), Code::peer_lost);
  EXPECT_NE(message.why().find("before it connected"), std::string::npos) << message.why();
}

TEST(Tcp, OverIPv6) {
  const auto all = local_interfaces();
  const bool has_v6 = all.ok() && choose_interfaces(*all, "", 6).ok();
  if (!has_v6) GTEST_SKIP() << "no IPv6 here";
  TcpOptions options;
  options.family = 6;
  Ranks ranks(tcp(options), 2);
  for (const AddressBlob::Entry& entry : address_of(ranks.at(0)).entries) {
    EXPECT_EQ(entry.address.family, 6);
  }
  EXPECT_TRUE(exchange(ranks, 1, 300000));
}

TEST(Tcp, OverAnInterfaceByName) {
  const auto all = local_interfaces();
  ASSERT_TRUE(all.ok());
  for (const Interface& each : *all) {
    TcpOptions options;
    options.interfaces = each.name;
    Ranks ranks(tcp(options), 2);
    EXPECT_TRUE(exchange(ranks)) << each.name;
  }
}

TEST(Tcp, OptionsThatCannotBe) {
  TcpOptions options;
  options.interfaces = "no-such-interface";
  EXPECT_EQ(make_tcp_endpoint(options).status().code(), Code::unavailable);
  options = {};
  options.congestion = "no-such-thing";
  const Status status = make_tcp_endpoint(options).status();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_NE(status.message().find("no-such-thing"), std::string::npos);
  options = {};
  options.window = size_t{4} << 30;
  EXPECT_EQ(make_tcp_endpoint(options).status().code(), Code::invalid);
}

TEST(Tcp, AProcessMayLeaveRightAfterItsLastSend) {
  auto receiver = tcp()(Ranks::process(1));
  auto sender = tcp()(Ranks::process(0));
  const size_t bytes = 500000;
  const TeamId team{Ranks::process(0), 1};
  auto in = receiver->open(team, {Ranks::process(0), sender->address(), "rank 0"});
  std::thread leaving([&, to = receiver->address()] {
    auto out = sender->open(team, {Ranks::process(1), to, "rank 1"});
    {
      Message message({1, 0, 0, 0}, bytes);
      message.fill().send(**out);
      EXPECT_TRUE(wait_for(*sender, [&] { return message.ok(); }));
    }
    out->reset();
    sender->say_bye();
    sender.reset();
  });
  Message message({1, 0, 0, 0}, bytes), none({1, 1, 0, 0}, bytes);
  std::this_thread::sleep_for(milliseconds(50));
  message.receive(**in);
  EXPECT_TRUE(wait_for(*receiver, [&] { return message.done(); }));
  EXPECT_TRUE(message.ok() && message.holds_pattern()) << message.why();
  none.receive(**in);
  EXPECT_TRUE(wait_for(*receiver, [&] { return none.done(); }));
  EXPECT_NE(none.why().find("rank 0 finished"), std::string::npos) << none.why();
  leaving.join();
}

// Several threads of each of two processes, each with a channel of its own.
TEST(Tcp, ManyThreadsOnOneLink) {
  TcpOptions options;
  options.threaded = true;
  options.window = 64 << 10;
  Ranks ranks(tcp(options), 2);
  constexpr uint32_t teams = 4;
  for (uint32_t team = 1; team <= teams; ++team) {
    ranks.channel(0, 1, team);
    ranks.channel(1, 0, team);
  }
  std::atomic<int> failures{0};
  std::atomic<uint32_t> finished{0};
  const auto run = [&](size_t rank, uint32_t team) {
    Channel& channel = ranks.channel(rank, 1 - rank, team);
    for (uint32_t call = 0; call < 200 && failures == 0; ++call) {
      Messages messages;
      const size_t bytes = (call * 7919 + team) % 50000;
      add(messages, {call, 0, 0, 3}, bytes).receive(channel);
      add(messages, {call, 0, 0, 3}, bytes).fill().send(channel);
      failures += !wait_for(ranks.at(rank), [&] { return Ranks::all_done(messages); });
      for (auto& message : messages) failures += !message->ok() || !message->holds_pattern();
    }
    ++finished;
    wait_for(ranks.at(rank), [&] { return finished == 2 * teams; });
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    for (uint32_t team = 1; team <= teams; ++team) threads.emplace_back(run, rank, team);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// A thread that sleeps for its own message is woken though another thread read it.
TEST(Tcp, ASleeperLearnsWhatAnotherThreadRead) {
  TcpOptions options;
  options.threaded = true;
  Ranks ranks(tcp(options), 2);
  ASSERT_TRUE(exchange(ranks, 1));
  ASSERT_TRUE(exchange(ranks, 2));
  Channel& mine = ranks.channel(1, 0, 1);
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    while (!stop) ranks.at(1).progress();
  });
  for (uint32_t call = 10; call < 60; ++call) {
    Message receive({call, 0, 0, 0}, 8), send({call, 0, 0, 0}, 8);
    receive.receive(mine);
    std::thread sender([&] {
      std::this_thread::sleep_for(milliseconds(2));
      send.send(ranks.channel(0, 1, 1));
    });
    const auto begin = Clock::now();
    while (!receive.done()) {
      ranks.at(1).progress();
      if (!receive.done()) ranks.at(1).wait(seconds(1));
    }
    EXPECT_LT(Clock::now() - begin, milliseconds(200));
    sender.join();
    EXPECT_TRUE(ranks.drive([&] { return send.done(); }));
  }
  stop = true;
  spinner.join();
}

}  // namespace
}  // namespace sluice
