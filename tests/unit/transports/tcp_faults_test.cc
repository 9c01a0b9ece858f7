// SPDX-License-Identifier: BSD-3-Clause
//
// What goes wrong on this side of a connection: memory that is not there, teams that are not.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// While it lives, this process gets no more memory.
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

// Memory that the program says it has.
class NoMemory {
 public:
  explicit NoMemory(size_t size)
      : size_(size), data_(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
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
  ASSERT_TRUE(done_in(pending, seconds(1)));
  EXPECT_EQ(pending.code(), Code::invalid);
  EXPECT_NE(pending.why().find("message to rank 0 can't be read"), std::string::npos)
      << pending.why();
  ASSERT_TRUE(send.done());
  EXPECT_EQ(send.code(), Code::invalid);
}

TEST_F(TcpPlayed, MemoryThatCantBeReceivedIntoIsNamedAtOnce) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  const NoMemory nothing(1 << 20);
  const Bytes piece = nothing.bytes();
  Message receive({1, 0, 0, 0}, 0);
  receive.operation.pieces = {&piece, 1};
  receive.operation.bytes = piece.size;
  receive.receive(*channel_);
  say(peer, data(static_cast<uint32_t>(piece.size)));
  ASSERT_FALSE(receive.done());
  progress_a_while();
  peer.say(std::string(1 << 16, 'x').data(), 1 << 16);
  ASSERT_TRUE(done_in(receive, seconds(1)));
  EXPECT_EQ(receive.code(), Code::invalid);
  EXPECT_NE(receive.why().find("message from rank 0 can't be written"), std::string::npos)
      << receive.why();
}

// Of a team that is over here, or never was.
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

// There is no memory for the rest of a message that was withdrawn: nothing else goes in its place.
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

}  // namespace
}  // namespace sluice
