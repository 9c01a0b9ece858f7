// SPDX-License-Identifier: BSD-3-Clause
//
// Faults on this side of a connection: lack of memory, unknown teams.
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/unit/transports/rails_rig.h"
#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// During its lifetime, this process gets no more memory.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    const rlimit now{pages * static_cast<size_t>(getpagesize()), before_.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  ~NoMoreMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  rlimit before_{};
};

// Memory that the program claims to have, but that cannot be accessed, or only read.
class NoMemory {
 public:
  explicit NoMemory(size_t size, int access = PROT_NONE)
      : size_(size), data_(mmap(nullptr, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~NoMemory() { munmap(data_, size_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  Bytes bytes() const { return {static_cast<std::byte*>(data_), size_}; }

 private:
  size_t size_;
  void* data_;
};

TEST_F(TcpPlayed, MemoryThatCantBeSentIsNamedAtOnce) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const NoMemory nothing(1 << 20);
  const Bytes piece = nothing.bytes();
  Message pending({1, 0, 0, 0}, 8), send({1, 0, 0, 0}, 0);
  pending.receive(*channel_);
  send.operation.pieces = {&piece, 1};
  send.operation.bytes = piece.size;
  send.send(*channel_);
  ASSERT_TRUE(done_in(pending, seconds(5)));
  EXPECT_EQ(pending.code(), Code::invalid);
  EXPECT_NE(pending.why().find("message to rank 0 can't be read"), std::string::npos)
      << pending.why();
  EXPECT_NE(pending.why().find("page of it is protected"), std::string::npos) << pending.why();
  ASSERT_TRUE(send.done());
  EXPECT_EQ(send.code(), Code::invalid);
}

TEST_F(TcpPlayed, MemoryThatCantBeReceivedIntoIsNamedAtOnce) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const NoMemory nothing(1 << 20, PROT_READ);
  const Bytes piece = nothing.bytes();
  Message receive({1, 0, 0, 0}, 0);
  receive.operation.pieces = {&piece, 1};
  receive.operation.bytes = piece.size;
  receive.receive(*channel_);
  say(peer, data(static_cast<uint32_t>(piece.size)));
  ASSERT_FALSE(receive.done());
  progress_a_while();
  peer.say(std::string(1 << 16, 'x').data(), 1 << 16);
  ASSERT_TRUE(done_in(receive, seconds(5)));
  EXPECT_EQ(receive.code(), Code::invalid);
  EXPECT_NE(receive.why().find("message from rank 0 can't be written"), std::string::npos)
      << receive.why();
  EXPECT_NE(receive.why().find("page of it is protected"), std::string::npos) << receive.why();
}

// ABORT frames of teams that are closed here, or never existed.
// The endpoint's socket of a connection.
int other_end_of(const Stranger& peer) {
  sockaddr_storage theirs{}, seen{};
  socklen_t size = sizeof(theirs);
  EXPECT_EQ(getsockname(peer.fd(), reinterpret_cast<sockaddr*>(&theirs), &size), 0);
  for (int fd = 0; fd < 1024; ++fd) {
    socklen_t length = sizeof(seen);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&seen), &length) == 0 && length == size &&
        std::memcmp(&seen, &theirs, size) == 0) {
      return fd;
    }
  }
  return -1;
}

// The peer stops reading, and this side's kernel soon gives up.
TEST_F(TcpPlayed, ATimeoutAfterShortMessagesHintsAtTheMtu) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const unsigned milliseconds_unanswered = 50;
  const int little = 4096;
  setsockopt(peer.fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
  EXPECT_EQ(setsockopt(other_end_of(peer), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds_unanswered,
                       sizeof(milliseconds_unanswered)),
            0);
  Message send({1, 0, 0, 0}, 1 << 20), pending({1, 0, 0, 0}, 8);
  send.send(*channel_);
  pending.receive(*channel_);
  ASSERT_TRUE(done_in(pending, seconds(60)));
  EXPECT_EQ(pending.code(), Code::peer_lost);
  EXPECT_NE(pending.why().find("Connection timed out; small packets have passed"),
            std::string::npos)
      << pending.why();
  EXPECT_NE(pending.why().find("MTU"), std::string::npos) << pending.why();
}

TEST_F(TcpPlayed, AbortsOfUnknownTeamsLeaveNothing) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const auto say_aborts = [&](uint32_t first, uint32_t last) {
    for (uint32_t team = first; team < last; ++team) {
      Script().add({FrameType::abort, false, 300, {Ranks::process(0), team}, {}, 0}).say(peer);
      if (team % 100 != 0) continue;
      Message message({team, 0, 0, 0}, 0);
      message.receive(*channel_);
      Script().add({FrameType::data, false, 0, team_, {team, 0, 0, 0}, 0}).say(peer);
      ASSERT_TRUE(done_in(message, seconds(5)));
    }
  };
  say_aborts(10, 1000);
  const auto allocated = [] { return mallinfo2().uordblks; };
  const size_t before = allocated();
  say_aborts(1000, 5000);
  EXPECT_LT(allocated(), before + 100000);
}

// An ABORT for a closed team must not displace one for a team that is yet to be opened.
TEST_F(TcpPlayed, AbortsOfTeamsThatAreOverLeaveOthers) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const auto abort_of = [&](uint32_t team) {
    return Frame{FrameType::abort, false, 8, {Ranks::process(0), team}, {}, 0};
  };
  Script().add(abort_of(10)).say(peer);
  for (uint32_t team = 11; team < 111; ++team) {
    const auto over = open({Ranks::process(0), team});
    Message never({1, 0, 0, 0}, 8);
    never.receive(*over);
  }
  Script script;
  for (uint32_t team = 11; team < 111; ++team) script.add(abort_of(team));
  script.add(data(0)).say(peer);
  Message token({1, 0, 0, 0}, 0);
  token.receive(*channel_);
  ASSERT_TRUE(done_in(token, seconds(5)));
  const auto opened = open({Ranks::process(0), 10});
  Message receive({1, 0, 0, 0}, 8);
  receive.receive(*opened);
  EXPECT_EQ(receive.code(), Code::aborted);
}

TEST_F(TcpPlayed, OfALongCauseSomeIsKept) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  Message pending({1, 0, 0, 0}, 8);
  pending.receive(*channel_);
  const std::string text(300000, 'x');
  say(peer, {FrameType::abort, false, static_cast<uint32_t>(text.size()), team_, {}, 0});
  for (size_t at = 0; at < text.size(); at += 1000) {
    peer.say(text.data() + at, 1000);
    endpoint_->progress();
  }
  ASSERT_TRUE(done_in(pending, seconds(5)));
  EXPECT_EQ(pending.code(), Code::aborted);
  EXPECT_GT(pending.why().size(), 4000U);
  EXPECT_LT(pending.why().size(), 100000U);
}

// Small socket buffers.
class TcpTight : public TcpPlayed {
 protected:
  TcpTight() : TcpPlayed(tight()) {}

  static TcpOptions tight() {
    TcpOptions options;
    options.socket_buffer = 4096;
    options.window = 1'200'000;
    return options;
  }
  // Receives the next frame and discards its payload, driving the endpoint meanwhile.
  Frame next(Stranger& peer) {
    std::vector<std::byte> bytes(Frame::bytes);
    Frame frame;
    for (size_t got = 0; got < bytes.size();) {
      endpoint_->progress();
      const ssize_t some = recv(peer.fd(), bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
      if (some > 0) got += static_cast<size_t>(some);
      if (got == Frame::bytes) {
        EXPECT_TRUE(frame.decode(bytes.data()));
        bytes.resize(Frame::bytes + frame.length);
      }
    }
    return frame;
  }
};

// A call ends because the peer is in another call. Then its unsent messages must give back their
// share of the window, and the credit that they would have carried.
TEST_F(TcpTight, WhatHasNotGoneIsGivenBack) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  constexpr uint32_t bytes = 500'000;  // three exceed the window; sockets take less than one
  Message first({1, 0, 0, 0}, bytes), second({2, 0, 0, 7}, bytes), third({3, 0, 0, 0}, bytes),
      token({4, 0, 0, 0}, 0), receive({2, 0, 0, 7}, 8);
  first.fill().send(*channel_);
  token.receive(*channel_);
  Script().add({FrameType::data, true, 0, team_, {4, 0, 0, 0}, 0}).say(peer);
  ASSERT_TRUE(done_in(token, seconds(5)));
  second.fill().send(*channel_);
  receive.receive(*channel_);
  Script().add({FrameType::data, true, 0, team_, {2, 0, 0, 8}, 0}).say(peer);
  ASSERT_TRUE(done_in(second, seconds(5)));
  EXPECT_EQ(second.code(), Code::mismatch);
  EXPECT_EQ(receive.code(), Code::mismatch);
  ASSERT_FALSE(first.done());
  third.fill().send(*channel_);
  EXPECT_EQ(next(peer).tag.call, 1U);
  const Frame frame = next(peer);
  EXPECT_EQ(frame.type, FrameType::data);
  EXPECT_EQ(frame.tag.call, 3U);
  EXPECT_TRUE(frame.charged);
  EXPECT_EQ(frame.credit(), 2 * Frame::bytes) << "for the token and what came of another operation";
}

// If there is no memory for the rest of a withdrawn message, nothing else may be sent in its place.
TEST_F(TcpPlayed, AMessageThatCantBeFinishedEndsTheLink) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "takes memory away, which sanitizers do not survive";
#endif
  TcpOptions options;
  options.max_message = options.window = size_t{256} << 20;
  options.self = Ranks::process(1);
  endpoint_ = tcp(options)(Ranks::process(1));
  const AddressBlob at = address_of(*endpoint_);
  channel_ = open(team_);
  Stranger peer(at.entries[0]);
  Greeting hello = greeting();
  hello.key = at.key;
  hello.window = options.window;
  peer.say(hello);
  const TeamId alive{Ranks::process(0), 2};
  const auto other = open(alive);
  Message token({0, 0, 0, 0}, 0), behind({1, 0, 0, 0}, 100000);
  Script().add({FrameType::data, true, 0, alive, {0, 0, 0, 0}, 0}).say(peer);
  token.receive(*other);
  ASSERT_TRUE(done_in(token, seconds(5)));
  std::vector<std::byte> memory(size_t{64} << 20);
  const Bytes piece{memory.data(), memory.size()};
  Message send({1, 0, 0, 0}, 0);
  send.operation.pieces = {&piece, 1};
  send.operation.bytes = piece.size;
  send.send(*channel_);
  ASSERT_FALSE(send.done());
  behind.fill().send(*other);
  {
    const NoMoreMemory no_more;
    channel_->withdraw();
  }
  std::array<std::byte, 65536> bytes;
  size_t other_bytes = 0, got = 0;
  recv(peer.fd(), bytes.data(), Greeting::bytes + Frame::bytes, MSG_WAITALL);
  while (true) {
    const ssize_t some = recv(peer.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (some == 0 || (some < 0 && errno != EAGAIN)) break;
    endpoint_->progress();
    if (some < 0) continue;
    got += static_cast<size_t>(some);
    other_bytes +=
        static_cast<size_t>(some - std::count(bytes.begin(), bytes.begin() + some, std::byte{0}));
  }
  EXPECT_GT(got, 0U);
  EXPECT_LT(got, memory.size());
  EXPECT_EQ(other_bytes, 0U);
  ASSERT_TRUE(behind.done());
  EXPECT_EQ(behind.code(), Code::memory);
}

// A connection broke amid a message that no receive awaits yet, and there are no descriptors for
// another. What waits for one fails; the message goes on once there are some.
class BrokenWithoutDescriptors : public testing::TestWithParam<std::tuple<size_t, unsigned>> {
 protected:
  static constexpr size_t fits = 500'000, announced = 700'000;
  static size_t waits() { return std::get<0>(GetParam()); }  // 0: it would dial; 1: be dialed
  static size_t sends() { return 1 - waits(); }
  static unsigned streams() { return std::get<1>(GetParam()); }
  static TcpOptions options() {
    TcpOptions made = with(streams(), 600'000, 16 << 10);
    made.interfaces = "127.0.0.0/8";
    return made;
  }
  Channel& channel(uint32_t team) { return ranks_.channel(waits(), sends(), team); }
  // Reads all that has come, though nothing is pending.
  void look_around() {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(channel(1).aborted_by_peer().ok());
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  void fail_for_lack(Message& waiting) {
    const Socket comes(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const FewDescriptors none(0);
    const auto entry = address_of(ranks_.at(1)).entries.front();
    const SocketAddress at = to_socket_address(entry.address, entry.port);
    waiting.receive(channel(1));
    ASSERT_EQ(connect(comes.fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size), 0);
    ASSERT_TRUE(wait_for(ranks_.at(waits()), [&] { return waiting.done(); }));
    EXPECT_EQ(waiting.code(), Code::unavailable) << waiting.why();
  }

  Ranks ranks_{tcp(options()), 2};
};

TEST_P(BrokenWithoutDescriptors, OtherTeamsMessagesStay) {
  ASSERT_TRUE(exchange(ranks_, 1) && exchange(ranks_, 2) && exchange(ranks_, 3));
  ASSERT_TRUE(streams() == 1 || make_rails(ranks_, streams()));
  Channel &to_second = ranks_.channel(sends(), waits(), 2),
          &to_third = ranks_.channel(sends(), waits(), 3);
  Message waiting({5, 0, 0, 0}, 8), rts({5, 0, 0, 0}, announced), part({5, 0, 0, 0}, fits);
  rts.fill().send(to_third);
  part.fill().send(to_second);
  look_around();
  ASSERT_FALSE(part.done() || rts.done());
  Breaker breaker;
  ASSERT_TRUE(breaker.hit(ranks_, waits(), Break::reset));
  EXPECT_TRUE(channel(1).aborted_by_peer().ok());  // now it knows
  fail_for_lack(waiting);
  Message second({5, 0, 0, 0}, fits), third({5, 0, 0, 0}, announced);
  second.receive(channel(2));
  third.receive(channel(3));
  EXPECT_TRUE(ranks_.drive([&] { return second.done() && third.done(); }));
  EXPECT_TRUE(second.ok() && second.holds_pattern()) << second.why();
  EXPECT_TRUE(third.ok() && third.holds_pattern()) << third.why();
}

INSTANTIATE_TEST_SUITE_P(Sides, BrokenWithoutDescriptors,
                         testing::Combine(testing::Values(0, 1), testing::Values(1U, 2U)));

size_t times_in(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A peer's greeting may be damaged on its way. Nobody can tell who sent it, but from where it came.
TEST(TcpDamage, IsReportedWithItsAddressAndCounted) {
  constexpr int visits = 25;
  TcpOptions options;
  options.interfaces = "127.0.0.0/8";
  testing::internal::CaptureStderr();
  {
    Ranks ranks(tcp(options), 2);
    const AddressBlob at = address_of(ranks.at(1));
    Message awaited({1, 0, 0, 0}, 8);
    awaited.receive(ranks.channel(1, 0));
    std::byte damaged[Greeting::bytes];
    Greeting{wire_version, Ranks::process(0), Ranks::process(1), at.key, 1 << 20}.encode(damaged);
    damaged[2] ^= std::byte{4};
    for (int i = 0; i < visits; ++i) {
      Stranger one(at.entries[0]);
      one.say(damaged, sizeof damaged);
      EXPECT_TRUE(ranks.drive([&] { return one.sent_away(); }, seconds(5)));
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string what = "the connection from 127.0.0.1 sent an invalid greeting";
  EXPECT_EQ(times_in(said, what), 2U) << said;
  EXPECT_EQ(times_in(said, what + ", and was turned away; 1 so far"), 1U) << said;
  EXPECT_EQ(times_in(said, what + ", and was turned away; 10 so far"), 1U) << said;
  EXPECT_EQ(times_in(said, "turned away 25 connections in all"), 1U) << said;
  EXPECT_EQ(times_in(said, "stranger"), 0U) << said;
}

}  // namespace
}  // namespace sluice
