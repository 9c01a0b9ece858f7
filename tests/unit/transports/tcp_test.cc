// SPDX-License-Identifier: BSD-3-Clause
//
// What is specific to TCP: connections, interfaces, descriptors, memory, threads.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "src/base/log.h"
#include "tests/unit/support/stopwatch.h"
#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/tcp/socket.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
    Ranks ranks(tcp(), 3);
    ASSERT_TRUE(exchange(ranks));
    for (const int fd : descriptors()) {
      if (before.contains(fd)) continue;
      EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
      EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << fd;
    }
  }
  EXPECT_EQ(descriptors(), before);
}

// The program closes all descriptors that it does not know, and opens a file of its own at each.
TEST(Tcp, FilesAtItsDescriptorsStayThePrograms) {
  const std::set<int> before = descriptors();
  const int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  std::set<int> taken;
  {
    Ranks ranks(tcp(), 2);
    ASSERT_TRUE(exchange(ranks));
    for (const int fd : descriptors()) {
      if (fd == file || before.contains(fd)) continue;
      EXPECT_EQ(dup2(file, fd), fd);
      taken.insert(fd);
    }
    Message receive({1, 0, 0, 0}, 8);
    receive.receive(ranks.channel(1, 0));
    ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
    EXPECT_NE(receive.why().find("this process has closed its descriptor"), std::string::npos)
        << receive.why();
  }
  struct stat about {};
  EXPECT_EQ(fstat(file, &about), 0);
  EXPECT_EQ(about.st_size, 0);
  for (const int fd : taken) EXPECT_EQ(close(fd), 0) << fd << " was the program's";
  close(file);
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
  run(2000, sweep(20000U, 20000U, 6000U));
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
    for (Operation* each = queue.pop_all(); each != nullptr; each = each->next) ++done;
    return done == operations.size();
  };
  ASSERT_TRUE(ranks.drive(all));
  for (const Operation& operation : operations) ASSERT_TRUE(operation.status.ok());
  getrusage(RUSAGE_SELF, &after);
  // Two windows and the messages themselves; not 512 MiB.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);
}

TEST(Tcp, APeerThatDiedBeforeItConnectedIsNoticed) {
  Ranks ranks(tcp(), 2);
  Message message({1, 0, 0, 0}, 4);
  message.receive(ranks.channel(1, 0));  // rank 0 is the side that connects
  ranks.leave(0);
  const Stopwatch watch;
  ASSERT_TRUE(wait_for(ranks.at(1), [&] { return message.done(); }));
  EXPECT_TRUE(is_prompt(watch.elapsed(), seconds(3)));
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
    if (!each.is_usable()) continue;
    TcpOptions options;
    options.interfaces = each.name;
    Ranks ranks(tcp(options), 2);
    EXPECT_TRUE(exchange(ranks)) << each.name;
  }
}

// A list that names one such warns, and one that excludes tells those who ask for it.
TEST(Tcp, ItemsThatMatchNothingAreMentioned) {
  const struct {
    const char *list, *told;
    Level level = Level::warning;
  } cases[] = {{"lo,nope*", "warning: SLUICE_TCP_INTERFACES=lo,nope*: 'nope*' matches no"},
               {"^nope*", ""},
               {" ^nope*", ""},
               {"^nope*", "SLUICE_TCP_INTERFACES=^nope*: 'nope*' matches no", Level::info},
               {"lo", "", Level::info}};
  for (const auto& [list, told, level] : cases) {
    TcpOptions options;
    options.interfaces = list;
    set_log_level(level);
    testing::internal::CaptureStderr();
    EXPECT_TRUE(make_tcp_endpoint(options).ok());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.empty(), *told == 0) << said;
    EXPECT_NE(said.find(told), std::string::npos) << said;
  }
  set_log_level(Level::warning);
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
  options.socket_buffer = 1;
  EXPECT_EQ(make_tcp_endpoint(options).status().code(), Code::invalid);
  options = {};
  options.window = size_t{4} << 30;
  EXPECT_EQ(make_tcp_endpoint(options).status().code(), Code::invalid);
}

void expect_that_no_descriptors_left_is_said() {
  Ranks ranks(tcp(), 3);
  Message first({1, 0, 0, 0}, 8), second({1, 1, 0, 0}, 8), first_in({1, 0, 0, 0}, 8),
      second_in({1, 1, 0, 0}, 8);
  first.send(ranks.channel(2, 1));
  first_in.receive(ranks.channel(1, 2));
  second_in.receive(ranks.channel(1, 2));
  ASSERT_TRUE(ranks.drive([&] { return first.done() && first_in.ok(); }));
  Message send({1, 0, 0, 0}, 8), receive({1, 0, 0, 0}, 8);
  send.send(ranks.channel(0, 1));
  const rlim_t open = *descriptors().rbegin() + 1;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{open, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  std::vector<Socket> fillers;
  for (Socket one(eventfd(0, 0)); one; one = Socket(eventfd(0, 0))) {
    fillers.push_back(std::move(one));
  }
  receive.receive(ranks.channel(1, 0));
  const bool ended = ranks.drive([&] { return receive.done(); });
  fillers.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(ended);
  EXPECT_EQ(receive.code(), Code::unavailable);
  EXPECT_NE(receive.why().find("oo many open files"), std::string::npos) << receive.why();
  second.send(ranks.channel(2, 1));
  EXPECT_TRUE(ranks.drive([&] { return second_in.done(); }));
  EXPECT_TRUE(second_in.ok()) << "the link that had come about: " << second_in.why();
  Message next({1, 0, 0, 0}, 8), next_in({1, 0, 0, 0}, 8);
  next.send(ranks.channel(0, 1, 2));
  next_in.receive(ranks.channel(1, 0, 2));
  ASSERT_TRUE(ranks.drive([&] { return next.done() && next_in.done(); }));
  EXPECT_TRUE(next_in.ok()) << "another team, once there are some: " << next_in.why();
}

TEST(Tcp, NoDescriptorsLeftIsSaid) { expect_that_no_descriptors_left_is_said(); }

// A new descriptor then gets number 0, which must not be used.
TEST(Tcp, NoDescriptorsLeftIsSaidThoughStandardInputIsClosed) {
  const Socket saved(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  close(STDIN_FILENO);
  expect_that_no_descriptors_left_is_said();
  if (saved) dup2(saved.fd(), STDIN_FILENO);
}

// A message that is partly sent is finished from a copy, because its memory may be gone.
TEST(Tcp, AMessageWithdrawnHalfwayArrivesWhole) {
  TcpOptions options;
  options.socket_buffer = 4096;
  Ranks ranks(tcp(options), 2);
  ASSERT_TRUE(exchange(ranks));
  const size_t bytes = 900000;
  Message receive({2, 0, 0, 0}, bytes), behind({3, 0, 0, 0}, 8), after({3, 0, 0, 0}, 8);
  {
    Message send({2, 0, 0, 0}, bytes);
    send.fill().send(ranks.channel(0, 1));
    ASSERT_FALSE(send.done());
    ranks.channel(0, 1).withdraw();
  }
  receive.receive(ranks.channel(1, 0));
  after.send(ranks.channel(0, 1));
  behind.receive(ranks.channel(1, 0));
  ASSERT_TRUE(ranks.drive([&] { return receive.done() && behind.done() && after.done(); }));
  EXPECT_TRUE(receive.ok() && receive.holds_pattern());
}

// If a window held only one segment that is slightly smaller than the peer's, only the kernel's
// probes would fill it, 5 times a second. So segments must be a small part of both sides' windows.
class SmallBuffers : public testing::TestWithParam<size_t> {};

TEST_P(SmallBuffers, HoldSeveralSegments) {
  const std::set<int> before = descriptors();
  TcpOptions options;
  options.socket_buffer = GetParam();
  Ranks ranks(tcp(options), 2);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(exchange(ranks, 1, GetParam() * 8));
  int connections = 0;
  for (const int fd : descriptors()) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    const bool knows = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    if (before.contains(fd) || !knows || info.tcpi_state != TCP_ESTABLISHED) continue;
    ++connections;
    EXPECT_LE(info.tcpi_snd_mss, GetParam() / 4);
    EXPECT_LE(info.tcpi_rcv_mss, GetParam() / 4);
  }
  EXPECT_EQ(connections, 2);
}

INSTANTIATE_TEST_SUITE_P(Bytes, SmallBuffers, testing::Values(4096, 16384, 65535));

}  // namespace
}  // namespace sluice
