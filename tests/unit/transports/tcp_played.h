// SPDX-License-Identifier: BSD-3-Clause
//
// A peer simulated by the test, which sends and receives single bytes and frames.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/transports/tcp_rig.h"
#include "transports/link/frame.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/proofs.h"
#include "transports/tcp/socket.h"

namespace sluice {

// A plain connection to a listener, as any program can make it.
class Stranger {
 public:
  explicit Stranger(const AddressBlob::Entry& entry)
      : socket_(::socket(entry.address.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM, 0)) {
    const SocketAddress to = to_socket_address(entry.address, entry.port);
    connected_ =
        connect(socket_.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0;
    const timeval limit{20, 0};  // so that a missing answer does not block forever
    setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  bool connected() const { return connected_; }
  int fd() const { return socket_.fd(); }
  void say(const void* bytes, size_t size) {
    EXPECT_EQ(send(socket_.fd(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  void say(const Greeting& greeting) { say(greeting, greeting.size()); }
  void say(const Greeting& greeting, size_t size) {
    std::byte bytes[Greeting::most_bytes];
    greeting.encode(bytes);
    say(bytes, size);
  }
  // The endpoint closed the connection without sending a byte.
  bool sent_away() const {
    char byte;
    pollfd ready{socket_.fd(), POLLIN, 0};
    return poll(&ready, 1, 0) > 0 && recv(socket_.fd(), &byte, 1, 0) <= 0;
  }

 private:
  Socket socket_;
  bool connected_ = false;
};

// Frames to be sent in one write.
class Script {
 public:
  Script& add(const Frame& frame, size_t payload) {
    const size_t at = bytes_.size();
    bytes_.resize(at + Frame::bytes + payload);
    frame.encode(bytes_.data() + at);
    const Message pattern(frame.tag, 0);
    for (size_t i = 0; i < payload; ++i) bytes_[at + Frame::bytes + i] = pattern.expected(i);
    return *this;
  }
  Script& add(const Frame& frame) { return add(frame, frame.length); }
  void say(Stranger& peer) const { peer.say(bytes_.data(), bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
};

// What a simulated peer says of itself. It has the key pair of the endpoint, if that has one.
inline AddressBlob played_address(const TcpOptions& options, uint64_t host, const Key& key,
                                  std::vector<AddressBlob::Entry> entries) {
  AddressBlob made{host, key, std::move(entries)};
  if (options.prover) {
    made.proves = true;
    made.public_key = options.prover->public_key();
  }
  return made;
}

// An endpoint and its simulated peer: the process with the lower id, which connects.
class TcpPlayed : public testing::Test {
 protected:
  // entries: where the peer says that it listens.
  explicit TcpPlayed(const TcpOptions& options = {}, std::vector<AddressBlob::Entry> entries = {})
      : options_(options),
        entries_(std::move(entries)),
        endpoint_(tcp(options)(Ranks::process(1))),
        blob_(address_of(*endpoint_)),
        channel_(open(team_)) {}

  std::unique_ptr<Channel> open(const TeamId& team) {
    auto opened = endpoint_->open(team, peer());
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  Peer peer() const {
    return {Ranks::process(0), played_address(options_, 1, key_, entries_).encode(), "rank 0"};
  }
  Greeting greeting() const {
    return {wire_version, Ranks::process(0), Ranks::process(1), blob_.key, options_.window};
  }
  void say(Stranger& peer, const Frame& frame, size_t size = Frame::bytes) {
    std::byte bytes[Frame::bytes];
    frame.encode(bytes);
    peer.say(bytes, size);
  }
  Frame data(uint32_t length, uint32_t ordinal = 0) const {
    return {FrameType::data, true, length, team_, {1, ordinal, 0, 0}, 0};
  }
  // Sends the greeting and receives the answer.
  void greet(Stranger& peer) {
    peer.say(greeting());
    Message message({0, 0, 0, 0}, 0);
    say(peer, {FrameType::data, true, 0, team_, {0, 0, 0, 0}, 0});
    message.receive(*channel_);
    EXPECT_TRUE(done_in(message, std::chrono::seconds(5)));
    std::byte answer[Greeting::bytes];
    EXPECT_EQ(recv(peer.fd(), answer, sizeof(answer), MSG_WAITALL), ssize_t{Greeting::bytes});
  }
  // Receives the next frame; its payload is discarded.
  Frame hear(Stranger& peer) {
    Frame frame;
    std::array<std::byte, Frame::bytes> bytes{};
    EXPECT_EQ(recv(peer.fd(), bytes.data(), bytes.size(), MSG_WAITALL), ssize_t{Frame::bytes});
    EXPECT_TRUE(frame.decode(bytes.data()));
    if (frame.length == 0) return frame;
    std::vector<std::byte> payload(frame.length);
    const ssize_t got = recv(peer.fd(), payload.data(), payload.size(), MSG_WAITALL);
    EXPECT_EQ(got, static_cast<ssize_t>(frame.length));
    return frame;
  }
  void progress_a_while() {
    for (int i = 0; i < 20; ++i) {
      endpoint_->wait(std::chrono::milliseconds(1));
      endpoint_->progress();
    }
  }
  bool done_in(Message& message, std::chrono::milliseconds limit) {
    return wait_for(
        *endpoint_, [&] { return message.done(); }, std::chrono::ceil<std::chrono::seconds>(limit));
  }

  const TcpOptions options_;
  const std::vector<AddressBlob::Entry> entries_;
  const TeamId team_{Ranks::process(0), 1};
  const Key key_{std::byte{42}};
  std::unique_ptr<Endpoint> endpoint_;
  const AddressBlob blob_;
  std::unique_ptr<Channel> channel_;
};

// An endpoint and its simulated peer, which listens: the endpoint connects.
class TcpPlayedListener : public testing::Test {
 protected:
  // The endpoint is process `self`, 0 or 1, and the peer the other, on a host of that identity.
  explicit TcpPlayedListener(const TcpOptions& options, uint64_t self = 0,
                             uint64_t host = host_identity())
      : options_(options),
        endpoint_(tcp(options)(Ranks::process(self))),
        blob_(address_of(*endpoint_)),
        self_(Ranks::process(self)),
        peer_(Ranks::process(1 - self)),
        peer_name_(Ranks::label(1 - self)) {
    const AddressBlob at = played_address(options_, host, key_, {{loopback(), 8, listener_.port}});
    auto opened = endpoint_->open({Ranks::process(0), 1}, {peer_, at.encode(), peer_name_});
    EXPECT_TRUE(opened.ok());
    channel_ = std::move(*opened);
  }

  // The endpoint's next connection.
  Socket accept() {
    Socket accepted;
    EXPECT_TRUE(wait_for(
        *endpoint_, [&] { return bool(accepted = std::move(*accept_from(listener_.socket))); }));
    return accepted;
  }
  // And what it says first.
  Socket accept(Greeting* heard) {
    Socket accepted = accept();
    std::byte bytes[Greeting::bytes_with_proof];
    const auto size = static_cast<ssize_t>(options_.prover ? sizeof(bytes) : Greeting::bytes);
    EXPECT_TRUE(wait_for(*endpoint_, [&] {
      return recv(accepted.fd(), bytes, sizeof(bytes), MSG_DONTWAIT) == size;
    }));
    EXPECT_TRUE(heard->decode(bytes));
    return accepted;
  }
  PairKey pair_key() const { return *options_.prover->agree(peer_, self_, blob_.public_key); }
  Greeting answer_to(const Greeting& asked, bool refuses = false) const {
    Greeting made{wire_version, asked.to, asked.from, blob_.key, options_.window, asked.proves};
    made.nonce[7] = std::byte{7};
    made.refuses = refuses;
    if (asked.proves) made.key = *second_proof(*options_.prover, pair_key(), asked, made);
    return made;
  }
  static void say(const Socket& to, const Greeting& words) {
    std::byte bytes[Greeting::most_bytes];
    words.encode(bytes);
    ASSERT_EQ(send_all(to, {bytes, words.size()}), 0);
  }
  bool ends() {
    return wait_for(*endpoint_, [&] { return message_.done(); });
  }
  // It names the peer.
  void expect_end(Code code, const std::string& why = "") {
    ASSERT_TRUE(ends());
    EXPECT_EQ(message_.code(), code);
    for (const std::string& part : {peer_name_, why}) {
      EXPECT_NE(message_.why().find(part), std::string::npos) << message_.why();
    }
  }

  const TcpOptions options_;
  const Key key_{std::byte{42}};
  Listener listener_ = std::move(*listen_on(loopback(), {}));
  std::unique_ptr<Endpoint> endpoint_;
  const AddressBlob blob_;
  const ProcessId self_, peer_;
  const std::string peer_name_;
  std::unique_ptr<Channel> channel_;
  Message message_{{1, 0, 0, 0}, 8};
};

}  // namespace sluice
