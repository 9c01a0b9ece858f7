// SPDX-License-Identifier: BSD-3-Clause
//
// Rails by themselves: the two ends of a connection in this process, encrypted, whose kernel lacks
// memory now and then.
#include "transports/link/rail.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/unit/transports/rig.h"
#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_rig.h"
#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

constexpr std::chrono::hours no_limit{1};
constexpr Vigil::Duration peer_timeout{60000};

// A socket to which writes fail for lack of memory: each with that probability in 4.
class PoorConduit final : public Conduit {
 public:
  PoorConduit(Conduit& rich, unsigned lacks, uint64_t seed)
      : rich_(rich), lacks_(lacks), random_(seed) {}
  const char* name() const override { return "poor"; }
  Moved write(std::span<const iovec> runs) override {
    return random_() % 4 < lacks_ ? Moved{Moved::Result::failed, 0, ENOBUFS} : rich_.write(runs);
  }
  Moved read(std::span<const iovec> runs) override {
    return lacks_to_read ? Moved{Moved::Result::failed, 0, ENOMEM} : rich_.read(runs);
  }

  bool lacks_to_read = false;

 private:
  Conduit& rich_;
  const unsigned lacks_;
  std::mt19937_64 random_;
};

// Both ends of a connection. Without a filter they are in clear, but each filters.
class RailEnds : public testing::Test {
 protected:
  RailEnds() {
    const Listener listener = std::move(*listen_on(loopback(), {}));
    const SocketAddress at = to_socket_address(loopback(), listener.port);
    sockets_[0] = std::move(*make_socket(loopback(), {}));
    (void)!::connect(sockets_[0].fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size);
    while (!sockets_[1]) sockets_[1] = std::move(*accept_from(listener.socket));
  }
  // lacks: of a PoorConduit under each end; 0: the socket itself.
  void open(FilterMaker* filters, unsigned lacks = 0) {
    const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
    for (const size_t end : {0, 1}) {
      auto& rail = rails_[end];
      rail = std::make_unique<Rail>(1, std::move(sockets_[end]), false, true, peer_timeout);
      if (filters == nullptr) continue;
      poor_[end] = std::make_unique<PoorConduit>(rail->conduits().plain(), lacks, seed + end);
      const ProcessId self = Ranks::process(end), peer = Ranks::process(1 - end);
      auto made = filters->make(*poor_[end], {self, peer, {}, end == 0});
      ASSERT_TRUE(made.ok()) << made.status().message();
      rail->conduits().add_filter(std::move(*made));
    }
  }
  // The first end sends, and the other receives. False if that comes to an end.
  bool move() {
    const Rail::Outcome sent = rails_[0]->flush(no_limit), received = rails_[1]->read(),
                        shaken = rails_[1]->flush(no_limit);
    return !sent.ended && !received.ended && !shaken.ended;
  }

  Socket sockets_[2];
  std::unique_ptr<PoorConduit> poor_[2];  // under the rails' filters
  std::unique_ptr<Rail> rails_[2];
};

class PoorRails : public RailEnds, public testing::WithParamInterface<unsigned> {};

// What was encrypted for a write that failed is sent again as it is, and once.
TEST_P(PoorRails, SendEachByteOnce) {
  if (!describe_tls(tls_options().folder).ok()) GTEST_SKIP() << "built without OpenSSL?";
  constexpr size_t bytes = 500'000;
  const auto filters = tls_filters();
  open(filters.get(), GetParam());
  Message sent({1, 0, 0, 0}, bytes), received({1, 0, 0, 0}, bytes);
  sent.fill();
  sent.operation.parts = 1;
  SpreadReceive receive;
  receive.at.receive = &received.operation;
  receive.missing = bytes;
  rails_[0]->push(&sent.operation, {}, 0, bytes);
  rails_[1]->expect(&receive, 0, bytes);
  for (int turn = 0; turn < 1'000'000 && receive.missing > 0; ++turn) ASSERT_TRUE(move());
  EXPECT_EQ(receive.missing, 0U);
  EXPECT_TRUE(received.holds_pattern());
}

INSTANTIATE_TEST_SUITE_P(Lacks, PoorRails, testing::Values(0U, 1U, 3U));

// A shortage that does not pass is an error of this side.
TEST_F(RailEnds, DoNotSendWithoutMemory) {
  SlowFilters filters(1);
  open(&filters, 4);
  Message sent({1, 0, 0, 0}, 100'000);
  rails_[0]->push(&sent.fill().operation, {}, 0, 100'000);
  EXPECT_FALSE(rails_[0]->flush(no_limit).ended);
  const Rail::Outcome outcome = rails_[0]->flush(std::chrono::seconds(0));
  EXPECT_TRUE(outcome.ended && outcome.ran_short) << outcome.how;
  EXPECT_NE(outcome.how.find("No buffer space"), std::string::npos) << outcome.how;
}

// Both ends are encrypted, and the connection ends or breaks at the first.
class EncryptedRails : public RailEnds {
 protected:
  void SetUp() override {
    if (!describe_tls(tls_options().folder).ok()) GTEST_SKIP() << "built without OpenSSL?";
    open((filters_ = tls_filters()).get());
  }
  void end_first(bool resets) {
    reset_when_closed(rails_[0]->conduits().socket(), resets);
    rails_[0].reset();
    pollfd ended{rails_[1]->conduits().socket().fd(), POLLRDHUP, 0};
    ASSERT_EQ(poll(&ended, 1, -1), 1);
  }

  // The other has not read the handshake yet, because it has had nothing to read.
  void expect_end_before_a_handshake(bool resets) {
    (void)rails_[0]->conduits().way_in().read({});
    EXPECT_FALSE(rails_[1]->has_ended());
    end_first(resets);
    EXPECT_TRUE(rails_[1]->has_ended());
  }

  std::shared_ptr<FilterMaker> filters_;
};

TEST_F(EncryptedRails, HaveEndedThoughAHandshakeIsUnread) { expect_end_before_a_handshake(false); }

TEST_F(EncryptedRails, HaveBrokenThoughAHandshakeIsUnread) { expect_end_before_a_handshake(true); }

TEST_F(EncryptedRails, DoNotReceiveWithoutMemory) {
  Message sent({1, 0, 0, 0}, 2000);
  sent.operation.parts = 2;
  SpreadReceive receive;
  receive.missing = 2000;
  rails_[0]->push(&sent.fill().operation, {}, 0, 1000);
  rails_[1]->expect(&receive, 0, 1000);
  while (receive.missing > 1000) ASSERT_TRUE(move());
  rails_[0]->push(&sent.operation, {}, 1000, 1000);
  rails_[1]->expect(&receive, 1000, 1000);
  EXPECT_FALSE(rails_[0]->flush(no_limit).ended);
  poor_[1]->lacks_to_read = true;
  const Rail::Outcome outcome = rails_[1]->read();
  EXPECT_TRUE(outcome.ended && outcome.ran_short) << outcome.how;
}

// What came before is read once it is due.
TEST_F(EncryptedRails, HaveNotEndedWhileBytesAreUnread) {
  constexpr size_t bytes = 1000;
  Message sent({1, 0, 0, 0}, 2 * bytes), received({1, 0, 0, 0}, 2 * bytes);
  sent.fill();
  sent.operation.parts = 2;
  SpreadReceive receive;
  receive.at.receive = &received.operation;
  receive.missing = 2 * bytes;
  for (const size_t at : {size_t{0}, bytes}) {
    rails_[0]->push(&sent.operation, {}, at, bytes);
    while (rails_[0]->has_parts()) {
      ASSERT_TRUE(move());
      (void)rails_[1]->conduits().way_in().read({});
    }
  }
  end_first(false);
  for (const size_t at : {size_t{0}, bytes}) {
    EXPECT_FALSE(rails_[1]->has_ended());
    rails_[1]->expect(&receive, at, bytes);
    ASSERT_FALSE(rails_[1]->read().ended);
  }
  EXPECT_TRUE(received.holds_pattern());
  EXPECT_TRUE(rails_[1]->has_ended());
}

// One whose filter could not be made carries nothing, in either direction.
TEST_F(RailEnds, CarryNothingBeforeTheirFilter) {
  const Socket seen(fcntl(sockets_[1].fd(), F_DUPFD_CLOEXEC, 0));
  open(nullptr);
  for (const auto& rail : rails_) {
    rail->confirm();
    EXPECT_FALSE(rail->is_open() || rail->may_send());
  }
  Message sent({1, 0, 0, 0}, 10'000);
  SpreadReceive receive;
  receive.missing = 10'000;
  rails_[0]->push(&sent.fill().operation, {}, 0, 10'000);
  rails_[1]->expect(&receive, 0, 10'000);
  ASSERT_TRUE(move());
  Conduit& out = rails_[0]->conduits().way_out();
  std::byte byte{1};
  const iovec run{&byte, 1};
  EXPECT_EQ(out.write({&run, 1}).result, Conduit::Moved::Result::nothing);
  EXPECT_EQ(rails_[0]->conduits().base().write({&run, 1}).result, Conduit::Moved::Result::nothing);
  EXPECT_EQ(recv(seen.fd(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(send(rails_[0]->conduits().socket().fd(), &byte, 1, 0), 1);
  ASSERT_TRUE(move());
  EXPECT_EQ(receive.missing, 10'000U);
  EXPECT_EQ(recv(seen.fd(), &byte, 1, 0), 1);
}

}  // namespace
}  // namespace sluice
