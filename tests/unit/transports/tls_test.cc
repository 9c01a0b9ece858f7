// SPDX-License-Identifier: BSD-3-Clause
//
// Encryption over a wire in memory that cuts, flips and stalls.
#include <array>
#include <cstring>
#include <memory>

#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

using Moved = Conduit::Moved;

PairKey key_of(uint8_t seed) {
  PairKey key;
  for (size_t i = 0; i < key.bytes.size(); ++i)
    key.bytes[i] = static_cast<std::byte>(seed + 37 * i);
  return key;
}

std::vector<std::byte> pattern(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

bool contains(const std::vector<std::byte>& bytes, const void* what, size_t size) {
  const auto* const begin = static_cast<const std::byte*>(what);
  return std::search(bytes.begin(), bytes.end(), begin, begin + size) != bytes.end();
}

// Both sides of a connection: 0 connects. Each sends a payload to the other.
struct Pair {
  struct Side {
    std::unique_ptr<WireEnd> end;
    std::unique_ptr<Conduit> tls;
    std::vector<std::byte> sends, got;
    size_t sent = 0;
    bool failed = false;
    std::string problem;
  };

  explicit Pair(size_t bytes, bool slow = false, const TlsOptions& options = tls_options(),
                const PairKey& key_of_first = key_of(1)) {
    const auto filters = tls_filters(options);
    for (const int side : {0, 1}) {
      wires[side].ended = &ended;
      sides[side].end = std::make_unique<WireEnd>(wires[side], wires[1 - side], slow, 7 + side);
      sides[side].sends = pattern(bytes, 1 + side);
    }
    const ProcessId first{5, 1}, second{5, 2};
    open(filters, 0, {first, second, key_of_first, true});
    open(filters, 1, {second, first, key_of(1), false});
  }

  void open(const std::shared_ptr<FilterMaker>& filters, int side, const ConduitEnds& ends) {
    auto made = filters->make(*sides[side].end, ends);
    ASSERT_TRUE(made.ok()) << made.status().message();
    sides[side].tls = std::move(*made);
  }

  void note(Side& side, const Moved& moved) {
    if (moved.result != Moved::Result::failed && moved.result != Moved::Result::closed) return;
    side.failed = true;
    side.problem = side.tls->problem();
  }

  // True if anything moved.
  bool turn(Side& side) {
    if (side.failed) return false;
    const size_t before = wires[0].bytes.size() + wires[1].bytes.size() + wires[0].read +
                          wires[1].read + side.got.size();
    if (side.sent < side.sends.size()) {
      // Two runs, so that records are joined.
      const size_t some = std::min<size_t>(side.sends.size() - side.sent, 100);
      const iovec runs[] = {
          {side.sends.data() + side.sent, some},
          {side.sends.data() + side.sent + some, side.sends.size() - side.sent - some}};
      const Moved moved = side.tls->write(runs);
      EXPECT_LE(moved.bytes, size_t{256} << 10);
      EXPECT_TRUE(!side.end->owes_more || side.tls->unsent() > 0 || side.failed);
      side.sent += moved.bytes;
      note(side, moved);
    }
    if (side.tls->unsent() > 0) note(side, side.tls->flush());
    std::byte bytes[5000];
    const iovec run{bytes, sizeof(bytes)};
    const Moved moved = side.tls->read({&run, 1});
    side.got.insert(side.got.end(), bytes, bytes + moved.bytes);
    note(side, moved);
    return before != wires[0].bytes.size() + wires[1].bytes.size() + wires[0].read + wires[1].read +
                         side.got.size();
  }

  bool done() const {
    return sides[0].got.size() == sides[1].sends.size() &&
           sides[1].got.size() == sides[0].sends.size();
  }
  // Until both are done or have failed, or nothing has moved for long.
  void drive() {
    for (int idle = 0; idle < 200 && !done(); ++idle) {
      bool moved = false;
      for (Side& side : sides) moved |= turn(side);
      if (moved) idle = 0;
    }
  }
  // Whether what has arrived is what was sent, as far as it goes.
  bool right() const {
    for (const int side : {0, 1}) {
      const auto& got = sides[side].got;
      const auto& sent = sides[1 - side].sends;
      if (got.size() > sent.size() || !std::equal(got.begin(), got.end(), sent.begin()))
        return false;
    }
    return true;
  }
  void end() { ended = true; }

  bool ended = false;
  std::array<Wire, 2> wires;  // by the side that writes
  std::array<Side, 2> sides;
};

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto about = describe_tls(tls_options().folder); !about.ok()) {
      GTEST_SKIP() << "built without OpenSSL? " << about.status().message();
    }
  }
};

TEST_F(Tls, CarriesBytesBothWays) {
  for (const size_t bytes : {1, 100, 16384, 16385, 1000000}) {
    Pair pair(bytes);
    pair.drive();
    EXPECT_TRUE(pair.done() && pair.right()) << bytes << pair.sides[0].problem;
  }
}

TEST_F(Tls, CarriesBytesOneAtATime) {
  Pair pair(20000, true);
  pair.drive();
  EXPECT_TRUE(pair.done() && pair.right());
  for (Pair::Side& side : pair.sides) EXPECT_EQ(side.tls->unsent(), 0U);
}

// So a send is not complete while the peer lacks the end of its record, though another message
// follows it in that record.
TEST_F(Tls, WhatTheOtherSideCannotReadIsUnsent) {
  constexpr size_t most = 40000;
  Pair pair(1);
  pair.drive();
  ASSERT_TRUE(pair.done());
  auto& [from, to] = pair.sides;
  const std::vector<std::byte> sent = pattern(most, 5);
  std::vector<std::byte> got(most);
  size_t taken = 0, given = 0, steps = 0;
  for (; given < most; ++steps) {
    from.end->takes = pair.wires[0].bytes.size() + 300;
    const iovec rest{const_cast<std::byte*>(sent.data()) + taken, most - taken},
        room{got.data() + given, most - given};
    (void)from.tls->flush();
    if (taken < most) taken += from.tls->write({&rest, 1}).bytes;
    given += to.tls->read({&room, 1}).bytes;
    ASSERT_GE(given + from.tls->unsent(), taken) << "step " << steps;
    ASSERT_LT(steps, most);
  }
  EXPECT_GT(steps, most / 300);
  EXPECT_EQ(got, sent);
}

// The connection ends between two records of one write: the first has been taken, because the other
// side can read it.
TEST_F(Tls, WhatTheOtherSideCanReadIsTaken) {
  constexpr size_t record = 16384;
  Pair pair(1);
  pair.drive();
  ASSERT_TRUE(pair.done());
  auto& [from, to] = pair.sides;
  const std::vector<std::byte> sent = pattern(3 * record, 5);
  std::vector<std::byte> got(sent.size());
  const iovec first{const_cast<std::byte*>(sent.data()), record},
      rest{const_cast<std::byte*>(sent.data()) + record, 2 * record}, room{got.data(), got.size()};
  const size_t before = pair.wires[0].bytes.size();
  ASSERT_EQ(from.tls->write({&first, 1}).bytes, record);
  pair.wires[0].cut = 2 * pair.wires[0].bytes.size() - before;
  EXPECT_EQ(from.tls->write({&rest, 1}).bytes, record);
  EXPECT_EQ(from.tls->write({&rest, 1}).result, Moved::Result::failed);
  EXPECT_EQ(to.tls->read({&room, 1}).bytes, 2 * record);
}

// What a small message takes: one write, and one read. A record of a long one takes no more, nor a
// copy: of what follows it, only its header is read ahead.
TEST_F(Tls, TakesFewCallsBelow) {
  constexpr size_t small = 56, large = 256 * 1024, record = 16 * 1024, around = 22;
  Pair pair(1);
  pair.drive();
  ASSERT_TRUE(pair.done());
  auto& [from, to] = pair.sides;
  std::vector<std::byte> sent = pattern(large, 5), got(large + record);
  for (const size_t bytes : {small, large}) {
    const size_t writes = from.end->writes, reads = to.end->reads, before = pair.wires[0].read;
    const size_t records = (bytes + record - 1) / record;
    const iovec out{sent.data(), bytes}, in{got.data(), got.size()};
    EXPECT_EQ(from.tls->write({&out, 1}).bytes, bytes);
    EXPECT_EQ(from.end->writes - writes, records);
    EXPECT_EQ(to.tls->read({&in, 1}).bytes, bytes);
    EXPECT_LE(to.end->reads - reads, records + 1);
    EXPECT_EQ(pair.wires[0].read - before, bytes + records * around);
    EXPECT_TRUE(
        std::equal(sent.begin(), sent.begin() + static_cast<ptrdiff_t>(bytes), got.begin()));
    EXPECT_FALSE(to.tls->buffered() || from.end->owes_more);
  }
  // Half a message more than a whole one: its first record is there, and is said to be.
  const iovec out{sent.data(), 2 * small}, in{got.data(), small};
  EXPECT_EQ(from.tls->write({&out, 1}).bytes, 2 * small);
  EXPECT_EQ(to.tls->read({&in, 1}).bytes, small);
  EXPECT_TRUE(to.tls->buffered());
  EXPECT_EQ(to.tls->read({&in, 1}).bytes, small);
  EXPECT_FALSE(to.tls->buffered());
}

TEST_F(Tls, HidesPayloadAndKeys) {
  Pair pair(50000);
  pair.drive();
  ASSERT_TRUE(pair.done());
  for (const int side : {0, 1}) {
    const auto& wire = pair.wires[side].bytes;
    ASSERT_GE(wire.size(), pair.sides[side].sends.size());
    EXPECT_FALSE(contains(wire, pair.sides[side].sends.data(), 16));
    EXPECT_FALSE(contains(wire, pair.sides[side].sends.data() + 30000, 16));
    EXPECT_FALSE(contains(wire, key_of(1).bytes.data(), 8));
  }
}

TEST_F(Tls, UpdatesItsKeys) {
  Pair whole(300000);
  whole.drive();
  TlsOptions options = tls_options();
  options.key_bytes = 20000;
  Pair updated(300000, false, options);
  updated.drive();
  ASSERT_TRUE(whole.done() && updated.done() && updated.right());
  // (An update is a record of 27 bytes.)
  EXPECT_GE(updated.wires[0].bytes.size(), whole.wires[0].bytes.size() + 5 * 27);
}

// However little it decrypts to, so that the other links get their turn.
TEST_F(Tls, ReceivesABoundedNumberOfBytesInACall) {
  TlsOptions options = tls_options();
  options.key_bytes = 1;  // a new key for each byte
  Pair pair(1, false, options);
  pair.drive();
  ASSERT_TRUE(pair.done());
  std::vector<std::byte> bytes(20000), got(bytes.size());
  for (std::byte& each : bytes) {
    const iovec run{&each, 1};
    ASSERT_EQ(pair.sides[0].tls->write({&run, 1}).bytes, 1U);
  }
  const size_t before = pair.wires[0].read;
  const iovec run{got.data(), got.size()};
  size_t given = pair.sides[1].tls->read({&run, 1}).bytes;
  EXPECT_GT(given, 0U);
  EXPECT_LE(pair.wires[0].read - before, size_t{340} << 10);
  for (size_t more = 1; more > 0; given += more) {
    const iovec rest{got.data() + given, got.size() - given};
    more = given < got.size() ? pair.sides[1].tls->read({&rest, 1}).bytes : 0;
  }
  EXPECT_EQ(given, got.size());
}

// A failure behind bytes that are given is told by the next call, whatever the connection says
// then.
TEST_F(Tls, TellsAFailureBehindGoodBytes) {
  Pair pair(1);
  pair.drive();
  ASSERT_TRUE(pair.done());
  std::byte bytes[100] = {};
  const iovec run{bytes, sizeof bytes};
  ASSERT_EQ(pair.sides[0].tls->write({&run, 1}).bytes, sizeof bytes);
  const size_t second = pair.wires[0].bytes.size();
  ASSERT_EQ(pair.sides[0].tls->write({&run, 1}).bytes, sizeof bytes);
  pair.wires[0].bytes[second + 20] ^= std::byte{1};
  std::byte got[1000];
  const iovec into{got, sizeof got};
  Conduit& reader = *pair.sides[1].tls;
  ASSERT_EQ(reader.read({&into, 1}).bytes, sizeof bytes);
  EXPECT_TRUE(reader.buffered());
  EXPECT_EQ(reader.read({&into, 1}).result, Moved::Result::failed);
}

TEST_F(Tls, AnotherKeyIsAnErrorOnBothSides) {
  Pair pair(1000, false, tls_options(), key_of(3));
  pair.drive();
  for (const Pair::Side& side : pair.sides) {
    EXPECT_TRUE(side.failed && side.got.empty());
    EXPECT_TRUE(side.problem.starts_with("TLS: handshake: ") ||
                side.problem.starts_with("TLS: the peer refuses this process: "))
        << side.problem;
  }
}

TEST_F(Tls, AConnectionCutAnywhereEndsBothSides) {
  Pair whole(10);
  whole.drive();
  ASSERT_TRUE(whole.done());
  for (const int side : {0, 1}) {
    for (size_t cut = 1; cut <= whole.wires[side].bytes.size(); ++cut) {
      Pair pair(100);
      pair.wires[side].cut = cut;
      pair.drive();
      pair.drive();
      EXPECT_TRUE(pair.right());
      EXPECT_TRUE(pair.sides[0].failed || pair.sides[0].got.size() == 100) << side << " at " << cut;
      EXPECT_TRUE(pair.sides[1].failed || pair.sides[1].got.size() == 100) << side << " at " << cut;
      EXPECT_FALSE(pair.done()) << side << " at " << cut;
    }
  }
}

// (Some bits of the handshake have no meaning, such as the version in a record's header. One that
// makes a record longer lets the receiver wait for its end.)
TEST_F(Tls, AFlippedBitIsNeverAWrongResult) {
  Pair whole(40);
  whole.drive();
  ASSERT_TRUE(whole.done());
  size_t errors = 0, flips = 0;
  for (const int side : {0, 1}) {
    for (size_t at = 0; at < whole.wires[side].bytes.size(); ++at, ++flips) {
      Pair pair(40);
      pair.wires[side].flip = 8 * at + (at * 5) % 8;
      pair.drive();
      ASSERT_TRUE(pair.right()) << side << " at " << at;
      if (pair.done()) continue;
      pair.end();
      for (Pair::Side& each : pair.sides) {
        while (pair.turn(each)) {
        }
        EXPECT_TRUE(each.failed || each.got.size() == 40) << side << " at " << at;
      }
      ++errors;
    }
  }
  EXPECT_GT(errors, flips * 9 / 10);
}

TEST_F(Tls, WithinAHostOnlyIfAsked) {
  TlsOptions options = tls_options();
  EXPECT_TRUE(tls_filters(options)->filters(true) && tls_filters(options)->filters(false));
  options.local = false;
  EXPECT_FALSE(tls_filters(options)->filters(true));
  EXPECT_TRUE(tls_filters(options)->filters(false));
}

TEST(TlsModule, IsMissingWithAReason) {
  TlsOptions options;
  options.folder = "/nowhere";
  const auto made = make_tls_filters(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::unavailable);
  EXPECT_NE(made.status().message().find("libsluice-tls.so"), std::string::npos);
}

}  // namespace
}  // namespace sluice
