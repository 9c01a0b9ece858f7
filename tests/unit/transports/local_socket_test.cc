// SPDX-License-Identifier: BSD-3-Clause
//
// What counts as a connection within a host where that makes a difference: one over a local socket,
// whatever the two sides say of their hosts.
#include <sys/socket.h>

#include <string>

#include "tests/unit/support/child.h"
#include "tests/unit/transports/tcp_rig.h"
#include "tests/unit/transports/tls_rig.h"
#include "transports/shm/upgrade.h"
#include "transports/tcp/local_socket.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

// How rank 0, which connects, sees rank 1, and rank 1 sees rank 0.
struct View {
  bool same_identity = true;
  std::string host = "n1";  // its name; this one's is n1
  bool hidden = false;      // its local socket is not to be found, as on another host
};

class TwoEndpoints {
 public:
  explicit TwoEndpoints(const TcpOptions& options, const View& view) {
    for (const size_t rank : {0, 1}) endpoints_[rank] = tcp(options)(Ranks::process(rank));
    Peer peers[2];
    for (const size_t rank : {0, 1}) peers[rank] = peer(rank, view);
    for (const size_t rank : {0, 1}) {
      met_[rank] = endpoints_[rank]->expect(peers);
      auto opened = endpoints_[rank]->open({Ranks::process(0), 1}, peers[1 - rank]);
      EXPECT_TRUE(opened.ok());
      channels_[rank] = std::move(*opened);
    }
  }

  Channel& channel(size_t rank) { return *channels_[rank]; }
  std::string carriers() { return std::string(channel(0).carrier()) + " " + channel(1).carrier(); }

  // False if this hangs.
  bool drive(const std::function<bool()>& holds) {
    return wait_for(*endpoints_[0], [&] {
      (void)endpoints_[1]->progress();
      return holds();
    });
  }

  // Each sends to the other and receives.
  bool exchange(size_t bytes = 100) {
    Messages messages;
    for (const size_t rank : {0, 1}) {
      add(messages, {calls_, 0, 0, 0}, bytes).fill().send(channel(rank));
      add(messages, {calls_, 0, 0, 0}, bytes).receive(channel(rank));
    }
    ++calls_;
    bool good = drive([&] { return Ranks::all_done(messages); });
    for (auto& message : messages) {
      good &= message->ok() && message->holds_pattern();
      EXPECT_TRUE(message->ok()) << message->why();
    }
    return good;
  }

 private:
  Peer peer(size_t rank, const View& view) {
    AddressBlob blob = address_of(*endpoints_[rank]);
    if (!view.same_identity) ++blob.host;
    // The local socket is named after the first port. Nobody listens at this one.
    if (view.hidden) {
      blob.entries.resize(1);
      blob.entries.insert(blob.entries.begin(), blob.entries.front());
      blob.entries.front().port = 1;
    }
    return {Ranks::process(rank), blob.encode(), Ranks::label(rank), view.host};
  }

  std::unique_ptr<Endpoint> endpoints_[2];
  std::shared_ptr<const void> met_[2];
  std::unique_ptr<Channel> channels_[2];
  uint32_t calls_ = 1;
};

class WithinAHost : public testing::Test {
 protected:
  void SetUp() override {
    TlsOptions tls = tls_options();
    tls.local = false;
    if (!describe_tls(tls.folder).ok()) GTEST_SKIP() << "built without OpenSSL?";
    encrypted_.filter = tls_filters(tls);
    encrypted_.prover = tls_prover();
    encrypted_.host = "n1";
  }

  TcpOptions encrypted_;
};

TEST_F(WithinAHost, BytesAreInClearOnlyOverALocalSocket) {
  TwoEndpoints pair(encrypted_, {});
  EXPECT_TRUE(pair.exchange() && pair.exchange(1 << 20));
  EXPECT_EQ(pair.carriers(), "unix unix");
}

TEST_F(WithinAHost, WhatAPeerSaysOfItsHostIsNotBelieved) {
  TwoEndpoints pair(encrypted_, {.hidden = true});
  EXPECT_TRUE(pair.exchange() && pair.exchange(1 << 20));
  EXPECT_EQ(pair.carriers(), "tls tls");
}

TEST_F(WithinAHost, OtherHostsAreEncrypted) {
  for (const View& view : {View{.host = "n2"}, View{.same_identity = false}}) {
    TwoEndpoints pair(encrypted_, view);
    EXPECT_TRUE(pair.exchange());
    EXPECT_EQ(pair.carriers(), "tls tls");
  }
}

TEST_F(WithinAHost, SharedMemoryReplacesTheLocalSocket) {
  encrypted_.upgrades = {make_shm_upgrades()};
  TwoEndpoints pair(encrypted_, {});
  for (int i = 0; i < 2000 && pair.carriers() != "shm shm"; ++i) ASSERT_TRUE(pair.exchange());
  EXPECT_EQ(pair.carriers(), "shm shm");
}

// Nobody asked for a difference between "within" and "between".
TEST_F(WithinAHost, WithoutEncryptionConnectionsAreTcp) {
  TwoEndpoints pair({}, {});
  EXPECT_TRUE(pair.exchange());
  EXPECT_EQ(pair.carriers(), "tcp tcp");
}

TEST_F(WithinAHost, RdmaIsDemandedOfAPeerThatOnlySaysItIsHere) {
  TcpOptions options;
  options.needs_upgrade = true;
  options.upgrades = {make_verbs_upgrades({16384, "", false, nullptr})};  // finds no device
  {
    TwoEndpoints pair(options, {.host = ""});
    EXPECT_TRUE(pair.exchange());
    EXPECT_EQ(pair.carriers(), "unix unix");
  }
  TwoEndpoints apart(options, {.host = "", .hidden = true});
  std::string why[2];  // messages may pass until both sides know
  for (uint32_t call = 1; call <= 6; ++call) {
    Messages messages;
    for (const size_t rank : {0, 1}) {
      add(messages, {call, 0, 0, 0}, 8).fill().send(apart.channel(rank));
      add(messages, {call, 0, 0, 0}, 8).receive(apart.channel(rank));
    }
    ASSERT_TRUE(apart.drive([&] { return Ranks::all_done(messages); }));
    for (const size_t rank : {0, 1}) {
      if (why[rank].empty()) why[rank] = messages[2 * rank + 1]->why();
    }
  }
  for (const std::string& each : why) {
    EXPECT_EQ(each.find("SLUICE_TRANSPORT=verbs does not allow TCP"), 0U) << each;
  }
}

TEST(LocalSocket, KnowsTheUserAtItsOtherEnd) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  EXPECT_EQ(in_child([] {
              const ProcessId id{0x5150, static_cast<uint64_t>(getpid())};
              const auto connects = [&](uint16_t port) {
                auto socket = make_local_socket({});
                const SocketAddress at = local_address(id, port);
                return connect(socket->fd(), reinterpret_cast<const sockaddr*>(&at.storage),
                               at.size) == 0 &&
                       is_local(*socket) && is_of_this_user(*socket);
              };
              const auto own = listen_locally(id, 1, {});
              if (!own.ok() || !connects(1)) return 1;
              if (seteuid(1000) != 0) return 2;
              const auto of_another = listen_locally(id, 2, {});
              if (!of_another.ok() || seteuid(0) != 0) return 3;
              return connects(2) ? 4 : 0;
            }),
            0);
}

}  // namespace
}  // namespace sluice
