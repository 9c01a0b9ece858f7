// SPDX-License-Identifier: BSD-3-Clause
//
// Which of a peer's addresses is connected to, if some are silent and some lead to another process.
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <thread>

#include "src/base/knobs.h"
#include "src/base/system_call.h"
#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/tcp_played.h"
#include "transports/tcp/dialer.h"
#include "transports/tcp/local_socket.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TcpOptions patient() {
  TcpOptions options;
  options.connect_timeout = seconds(60);
  options.interfaces = "127.0.0.0/8";
  return options;
}

// Far less than the connect timeout: what ends within this time did not end by the timeout.
constexpr seconds soon{20};

// Ranks 0 and 1, and rank 2, which is the wrong peer. Rank 0 connects to rank 1.
class TcpDialing : public testing::Test {
 protected:
  static constexpr uint64_t unknown_host = 0;

  TcpDialing() : ranks_(tcp(patient()), 3) {}

  AddressBlob::Entry listener_of(size_t rank) {
    return address_of(ranks_.at(rank)).entries.front();
  }
  // Rank 0 sends to rank 1, and gets these addresses of rank 1.
  void open(uint64_t host, const std::vector<AddressBlob::Entry>& entries) {
    AddressBlob blob = address_of(ranks_.at(1));
    blob.host = host;
    blob.entries = entries;
    auto opened = ranks_.at(0).open(team_, {Ranks::process(1), blob.encode(), "rank 1"});
    ASSERT_TRUE(opened.ok());
    channel_ = std::move(*opened);
    out_.fill().send(*channel_);
    in_.receive(ranks_.channel(1, 0));
  }
  bool is_through() {
    return ranks_.drive([&] { return out_.done() && in_.done(); }, soon);
  }
  void expect_right() {
    ASSERT_TRUE(is_through()) << out_.why();
    EXPECT_TRUE(out_.ok()) << out_.why();
    EXPECT_TRUE(in_.ok() && in_.holds_pattern()) << in_.why();
  }
  // Makes rank 2 accept connections: it waits for a process that never comes.
  void make_rank_2_wait() {
    const Peer nobody{{1, 1}, AddressBlob{1, {}, {}}.encode(), "nobody"};
    auto opened = ranks_.at(2).open({Ranks::process(2), 9}, nobody);
    ASSERT_TRUE(opened.ok());
    waiting_ = std::move(*opened);
    awaited_.receive(*waiting_);
  }

  Ranks ranks_;
  const TeamId team_{Ranks::process(0), 1};
  std::unique_ptr<Channel> channel_, waiting_;
  Message out_{{1, 0, 0, 0}, 1000}, in_{{1, 0, 0, 0}, 1000}, awaited_{{1, 0, 0, 0}, 8};
};

TEST_F(TcpDialing, TheSecondAddressIsTriedWhileTheFirstIsSilent) {
  const Silent silent;
  open(host_identity(), {silent.entry(), listener_of(1)});
  expect_right();
}

TEST_F(TcpDialing, AllAddressesAreTriedInAShortTime) {
  TcpOptions options = patient();
  options.connect_timeout = milliseconds(100);
  const Silent silent;
  auto sender = tcp(options)(Ranks::process(0));
  const Listener second = std::move(*listen_on(loopback(), {}));
  AddressBlob blob = address_of(ranks_.at(1));
  blob.entries = {silent.entry(), {loopback(), 8, second.port}};
  auto opened = sender->open(team_, {Ranks::process(1), blob.encode(), "rank 1"});
  ASSERT_TRUE(opened.ok());
  Message message({1, 0, 0, 0}, 8);
  message.send(**opened);
  EXPECT_TRUE(wait_for(*sender, [&] { return bool(*accept_from(second.socket)); }));
}

// A network that hosts have alike leads to another machine, which takes connections.
TEST_F(TcpDialing, AnAddressThatIsCertainAndSilent) {
  const Listener decoy = std::move(*listen_on(loopback(), {}));
  open(host_identity(), {{loopback(), 8, decoy.port}, listener_of(1)});
  expect_right();
}

// What a user may do depends on what failed.
TEST_F(TcpDialing, WithoutDescriptorsTheLimitIsNamedAndNoFirewall) {
  // The sanitizer looks at an object of a new type through descriptors: it has seen all of them
  // then.
  Ranks others(tcp(patient()), 2);
  ASSERT_TRUE(exchange(others));
  const AddressBlob::Entry there = listener_of(1);
  const FewDescriptors few(0);
  open(unknown_host, {there});
  ASSERT_TRUE(ranks_.drive([&] { return out_.done(); }, soon));
  EXPECT_EQ(out_.code(), Code::unavailable);
  EXPECT_NE(out_.why().find("Too many open files; raise this process's limit of descriptors "
                            "(ulimit -n)"),
            std::string::npos)
      << out_.why();
  EXPECT_EQ(out_.why().find("firewall"), std::string::npos) << out_.why();
}

// The first team says why; the next one connects.
TEST_F(TcpDialing, OnceThereAreDescriptorsAgainTheNextTeamConnects) {
  Ranks others(tcp(patient()), 2);
  ASSERT_TRUE(exchange(others));  // for the sanitizer, as above
  Message first({1, 0, 0, 0}, 8);
  {
    Channel& channel = ranks_.channel(0, 1, 1);
    const FewDescriptors few(0);
    first.send(channel);
    ASSERT_TRUE(ranks_.drive([&] { return first.done(); }, soon));
  }
  EXPECT_EQ(first.code(), Code::unavailable) << first.why();
  EXPECT_NE(first.why().find("Too many open files"), std::string::npos) << first.why();
  EXPECT_TRUE(exchange(ranks_, 2));
}

TEST(TcpDialer, HintsFitTheError) {
  const std::pair<int, const char*> hints[] = {
      {ETIMEDOUT,
       "is a firewall between? or is net.core.somaxconn of its host less than the number of "
       "ranks?"},
      {EHOSTUNREACH, "is a firewall between?"},
      {ENETUNREACH, "no route leads there: choose networks with SLUICE_TCP_INTERFACES"},
      {ECONNREFUSED, "it is gone, or a firewall is between"},
      {EMFILE, "raise this process's limit of descriptors (ulimit -n)"},
      {ENFILE, "raise this host's limit of open files (sysctl fs.file-max)"},
      {EAFNOSUPPORT, ""},
      {ENOMEM, ""},
      {0, ""}};
  for (const auto& [error, hint] : hints) EXPECT_STREQ(hint_of(error), hint) << error_text(error);
}

// It is first tried when the deadline has already passed.
TEST_F(TcpDialing, TheLastAddressHasItsTimeHoweverLateItIsTried) {
  TcpOptions options = patient();
  options.connect_timeout = milliseconds(100);
  const Silent first, second;
  auto sender = tcp(options)(Ranks::process(0));
  AddressBlob blob = address_of(ranks_.at(1));
  blob.entries = {first.entry(), second.entry()};
  auto opened = sender->open(team_, {Ranks::process(1), blob.encode(), "rank 1"});
  ASSERT_TRUE(opened.ok());
  Message message({1, 0, 0, 0}, 8);
  message.send(**opened);
  std::this_thread::sleep_for(milliseconds(150));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_for(*sender, [&] { return message.done(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
  EXPECT_EQ(message.code(), Code::timeout) << message.why();
}

// Makes socket(AF_INET6) fail, as on a kernel without IPv6.
bool refuse_ipv6() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum Verdict { good, no_filter, not_through, sent_away };

// Rank 1 waits for rank 0. Meanwhile it connects to rank 2, one of whose addresses has a family
// that is not available here.
Verdict connect_beside_a_pending_connection() {
  if (!refuse_ipv6()) return no_filter;
  Ranks ranks(tcp(patient()), 3);
  Message awaited({1, 0, 0, 0}, 8);
  awaited.receive(ranks.channel(1, 0));
  const Stranger stranger(address_of(ranks.at(1)).entries.front());
  ranks.drive_a_while();
  AddressBlob blob = address_of(ranks.at(2));
  IpAddress other;
  parse_ip("::1", &other);
  blob.entries.insert(blob.entries.begin(), {other, 128, 9});
  const TeamId team{Ranks::process(0), 1};
  auto opened = ranks.at(1).open(team, {Ranks::process(2), blob.encode(), "rank 2"});
  if (!opened.ok()) return not_through;
  Message out({1, 0, 0, 0}, 8), in({1, 0, 0, 0}, 8);
  out.send(**opened);
  in.receive(ranks.channel(2, 1));
  if (!ranks.drive([&] { return out.ok() && in.ok(); }, soon)) return not_through;
  return stranger.sent_away() ? sent_away : good;
}

// The pending connection may be of a peer that has not greeted yet.
TEST(TcpDialer, DropsNobodyForASocketThatCantBeHadAnyway) {
  const pid_t child = fork();
  if (child == 0) _exit(connect_beside_a_pending_connection());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_filter) GTEST_SKIP() << "no filter of system calls here";
  EXPECT_EQ(WEXITSTATUS(status), good);
}

// Its peer is there, and late.
TEST(TcpDialer, WaitsForRoomInTheQueueOfALocalSocket) {
  constexpr uint16_t port = 7;
  TcpContext context;
  context.options.self = Ranks::process(0);
  const auto listener = listen_locally(Ranks::process(1), port, context.options);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  ASSERT_EQ(listen(listener->fd(), 0), 0);  // which has room for one
  Candidate local;
  local.port = port;
  local.certain = local.local = local.here = local.answered = true;
  const Greeting greeting{wire_version, Ranks::process(0), Ranks::process(1), {}, 0};
  Dialer first(context, {&local, 1}, greeting, {}), second(context, {&local, 1}, greeting, {});
  EXPECT_EQ(first.advance(), Dialer::State::dialing);
  EXPECT_TRUE(first.is_held(milliseconds(0)));
  EXPECT_EQ(second.advance(), Dialer::State::dialing);
  EXPECT_FALSE(second.is_held(milliseconds(0)));
  const Socket accepted = std::move(*accept_from(*listener));
  for (int i = 0; i < 1000 && !second.is_held(milliseconds(0)); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    ASSERT_EQ(second.advance(), Dialer::State::dialing) << second.failures();
  }
  EXPECT_TRUE(second.is_held(milliseconds(0)));
}

// A firewall in the kernel before a listener: drops what comes from that port, or from any but
// that, or all.
class Firewall {
 public:
  explicit Firewall(const Listener& listener) : listener_(listener) { set(0, dropped, dropped); }
  void pass_only(uint16_t port) { set(port, passed, dropped); }
  void drop_only(uint16_t port) { set(port, dropped, passed); }

 private:
  static constexpr uint32_t dropped = 0, passed = 0xffff;
  void set(uint16_t port, uint32_t same, uint32_t others) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),  // the source port
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, same),
        BPF_STMT(BPF_RET | BPF_K, others),
    };
    const sock_fprog filter{std::size(program), program};
    ASSERT_EQ(
        setsockopt(listener_.socket.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)),
        0);
  }
  const Listener& listener_;
};

// A dialer, and what connects meanwhile.
class DialerInAnOutage : public testing::Test {
 protected:
  DialerInAnOutage() {
    context_.options.self = Ranks::process(0);
    context_.options.connect_timeout = seconds(60);
    Candidate there;
    there.address = loopback();
    there.port = listener_.port;
    there.answered = true;
    const Greeting greeting{wire_version, Ranks::process(0), Ranks::process(1), {}, 0};
    dialer_ = std::make_unique<Dialer>(context_, std::span(&there, 1), greeting, PairKey{});
  }
  // The ports of the sockets that connect.
  std::vector<uint16_t> ports() {
    EXPECT_EQ(dialer_->advance(), Dialer::State::dialing) << dialer_->failures();
    std::vector<pollfd> polls;
    dialer_->add_to(polls);
    std::vector<uint16_t> ports;
    for (const pollfd& each : polls) ports.push_back(port_of(each.fd, false));
    return ports;
  }
  // Until so many have been made beside the first, one after the other.
  uint16_t await_fresh(size_t count) {
    const uint16_t first = ports().front();
    std::set<uint16_t> fresh;
    for (int i = 0; i < 2000 && fresh.size() < count; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
      const std::vector<uint16_t> now = ports();
      EXPECT_EQ(now.front(), first);
      EXPECT_LE(now.size(), 2U);
      if (now.size() > 1) fresh.insert(now[1]);
    }
    EXPECT_EQ(fresh.size(), count);
    return first;
  }
  // The port from which the greeting comes.
  uint16_t await_greeting() {
    Socket accepted;
    for (int i = 0; i < 2000 && !accepted; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
      ports();
      accepted = std::move(*accept_from(listener_.socket));
    }
    EXPECT_TRUE(accepted);
    for (int i = 0; i < 100 && !dialer_->is_held(milliseconds(0)); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
      ports();
    }
    EXPECT_EQ(ports().size(), 1U);
    std::byte bytes[Greeting::bytes];
    EXPECT_EQ(recv(accepted.fd(), bytes, sizeof(bytes), MSG_DONTWAIT), ssize_t{sizeof(bytes)});
    EXPECT_FALSE(*accept_from(listener_.socket)) << "the other one connects, too";
    return port_of(accepted.fd(), true);
  }

  const Listener listener_ = std::move(*listen_on(loopback(), {}));
  Firewall firewall_{listener_};
  TcpContext context_;
  std::unique_ptr<Dialer> dialer_;
};

// Whose kernel would wait for seconds until it asks once more.
TEST_F(DialerInAnOutage, AFreshSocketGetsThroughBeforeTheFirst) {
  const uint16_t first = await_fresh(2);
  firewall_.drop_only(first);
  EXPECT_NE(await_greeting(), first);
}

// Answers take longer than the fresh ones live.
TEST_F(DialerInAnOutage, TheFirstSocketGetsThroughWhereFreshOnesDoNot) {
  const uint16_t first = await_fresh(1);
  firewall_.pass_only(first);
  EXPECT_EQ(await_greeting(), first);
}

// As if /proc is hidden from one of them.
TEST_F(TcpDialing, ThatItIsThisHostNeedNotBeKnown) {
  open(unknown_host, {listener_of(1)});
  expect_right();
}

TEST_F(TcpDialing, AnotherProcessThatTakesConnections) {
  make_rank_2_wait();
  open(unknown_host, {listener_of(2), listener_of(1)});
  expect_right();
  EXPECT_FALSE(awaited_.done());
  Message late({2, 0, 0, 0}, 8), sent({2, 0, 0, 0}, 8);
  sent.send(ranks_.channel(1, 2));
  late.receive(ranks_.channel(2, 1));
  EXPECT_TRUE(ranks_.drive([&] { return late.ok() && sent.ok(); })) << "it is as it was";
}

TEST_F(TcpDialing, AnotherProcessThatIsBusy) {
  open(unknown_host, {listener_of(2), listener_of(1)});
  expect_right();
}

// Until the answer comes, only the greeting is sent.
TEST_F(TcpDialing, APeerThatIsBusy) {
  open(unknown_host, {listener_of(1), listener_of(1)});
  for (int i = 0; i < 30; ++i) {
    ranks_.at(0).wait(milliseconds(20));
    ranks_.at(0).progress();
  }
  EXPECT_FALSE(out_.done());
  expect_right();
  ranks_.drive_a_while();
  EXPECT_TRUE(exchange(ranks_, 7)) << "the connection that is left is the same for both";
}

TEST_F(TcpDialing, AnotherProcessAlone) {
  make_rank_2_wait();
  open(unknown_host, {listener_of(2)});
  ASSERT_TRUE(ranks_.drive([&] { return out_.done(); }, soon));
  EXPECT_EQ(out_.code(), Code::peer_lost);
  EXPECT_NE(out_.why().find("another process"), std::string::npos) << out_.why();
  EXPECT_EQ(out_.why().find("firewall"), std::string::npos) << out_.why();
}

TEST_F(TcpDialing, AnotherProgramFirst) {
  auto listener = listen_on(loopback(), {});
  ASSERT_TRUE(listener.ok());
  open(unknown_host, {{loopback(), 8, listener->port}, listener_of(1)});
  Socket accepted;
  ASSERT_TRUE(ranks_.drive(
      [&] { return bool(accepted = std::move(*accept_from(listener->socket))); }, soon));
  EXPECT_EQ(send(accepted.fd(), "220 mail ready\r\n", 16, MSG_NOSIGNAL), 16);
  expect_right();
}

// Each process has a port of the range, as long as one is left.
TEST(TcpPorts, AreOfTheRange) {
  uint16_t first;
  {
    const auto probe = listen_on(loopback(), {});
    ASSERT_TRUE(probe.ok());
    first = std::min<uint16_t>(probe->port, 65530);
  }
  TcpOptions options;
  options.interfaces = "127.0.0.1";
  options.ports = {first, static_cast<uint16_t>(first + 2)};
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::set<uint16_t> ports;
  for (size_t i = 0; i < 4; ++i) {
    options.self = Ranks::process(i);
    auto made = make_tcp_endpoint(options);
    if (!made.ok()) {
      EXPECT_EQ(made.status().code(), Code::unavailable);
      EXPECT_NE(made.status().message().find("SLUICE_TCP_PORTS=" + std::to_string(first) + "-" +
                                             std::to_string(first + 2) +
                                             ": no port is free on 127.0.0.1"),
                std::string::npos)
          << made.status().message();
      continue;
    }
    const uint16_t port = address_of(**made).entries.front().port;
    EXPECT_TRUE(port >= first && port <= first + 2 && ports.insert(port).second) << port;
    endpoints.push_back(std::move(*made));
  }
  EXPECT_LT(endpoints.size(), 4U);
  EXPECT_EQ(ports.size(), endpoints.size());
}

// Ports that need a privilege, which this thread lacks as long as this lives.
class Unprivileged {
 public:
  static constexpr uint16_t first_free = 1024;
  Unprivileged() {
    std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> start_;
    syscall(SYS_capget, &header_, had_);
    __user_cap_data_struct less[2] = {had_[0], had_[1]};
    less[0].effective &= ~(uint32_t{1} << CAP_NET_BIND_SERVICE);
    syscall(SYS_capset, &header_, less);
  }
  ~Unprivileged() { syscall(SYS_capset, &header_, had_); }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  bool applies() const { return start_ == first_free; }

 private:
  int start_ = 0;
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct had_[2]{};
};

TEST(TcpPorts, ThatNeedAPrivilegeArePassedOver) {
  const Unprivileged user;
  if (!user.applies()) GTEST_SKIP() << "this host has other privileged ports";
  TcpOptions options;
  options.ports = {1000, 1100};
  const auto made = listen_on(loopback(), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_GE(made->port, Unprivileged::first_free);
  options.ports = {1000, 1001};
  const auto none = listen_on(loopback(), options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(),
            "SLUICE_TCP_PORTS=1000-1001: no port is free on 127.0.0.1; this user may not listen at "
            "the lowest (net.ipv4.ip_unprivileged_port_start)");
}

// What is left of an earlier process's connections does not hold its port.
TEST(TcpPorts, CanBeUsedAgainAtOnce) {
  TcpOptions options = patient();
  {
    const auto probe = listen_on(loopback(), {});
    ASSERT_TRUE(probe.ok());
    options.ports = {probe->port, probe->port};
  }
  const auto listener = listen_on(loopback(), options);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  {
    const Stranger peer({loopback(), 8, listener->port});
    auto accepted = accept_from(listener->socket);
    ASSERT_TRUE(accepted.ok() && *accepted);
    accepted->close();  // first, so that its port is what waits
  }
  const_cast<Listener&>(*listener).socket.close();
  EXPECT_TRUE(listen_on(loopback(), options).ok());
}

TEST(TcpOptions, ComeFromTheKnobs) {
  Knobs knobs;
  knobs.connect_timeout = 1.5;
  knobs.peer_timeout = 4.5;
  knobs.interfaces = "eth7";
  knobs.address_family = 6;
  knobs.window = 1 << 20;
  knobs.segment = 4096;
  knobs.socket_buffer = 8192;
  knobs.congestion = "reno";
  knobs.ports = "50000-50100";
  const TcpOptions options = TcpOptions::of(knobs);
  EXPECT_EQ(options.connect_timeout, milliseconds(1500));
  EXPECT_EQ(options.peer_timeout, milliseconds(4500));
  EXPECT_EQ(options.interfaces, "eth7");
  EXPECT_EQ(options.family, 6);
  EXPECT_EQ(options.window, size_t{1} << 20);
  EXPECT_EQ(options.max_message, 4 * size_t{4096});
  EXPECT_EQ(options.socket_buffer, 8192U);
  EXPECT_EQ(options.congestion, "reno");
  EXPECT_EQ(options.ports.first, 50000);
  EXPECT_EQ(options.ports.last, 50100);
}

}  // namespace
}  // namespace sluice
