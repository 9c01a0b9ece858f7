// SPDX-License-Identifier: BSD-3-Clause
//
// A link whose peer is played: it greets as it must, or does not, and then sends anything, in any
// order with what this side does. The first byte of an input chooses the side that this process
// has; operations follow, each a byte with what it takes.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tls_rig.h"
#include "transports/link/frame.h"
#include "transports/shm/upgrade.h"
#include "transports/tcp/address.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/proofs.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp.h"
#include "transports/verbs/upgrade.h"

namespace sluice::fuzz {
namespace {

constexpr ProcessId first{0x5150, 100}, second{0x5150, 101};
constexpr TeamId teams[] = {{first, 1}, {first, 2}, {second, 1}, {first, 0xffffffff}};
constexpr size_t open_teams = 2;  // of these; the peer knows the others
constexpr uint32_t lengths[] = {0, 1, 8, 100, 4000, 70000, (1U << 20) + 1, 0xffffffff};
constexpr size_t most_payload = 70000;

// A posted operation and its memory.
class Posted {
 public:
  Posted(const Tag& tag, size_t bytes) : memory_(bytes), piece_{memory_.data(), bytes} {
    operation_.tag = tag;
    operation_.bytes = bytes;
    operation_.pieces = {&piece_, size_t{bytes > 0}};
    operation_.queue = &queue_;
  }
  Operation* operation() { return &operation_; }

 private:
  std::vector<std::byte> memory_;
  Bytes piece_;
  CompletionQueue queue_;
  Operation operation_;
};

// Which side the endpoint under test is. (The first process connects.)
enum class Side : uint8_t { accepting, connecting };

class PlayedLink {
 public:
  PlayedLink(Side side, TcpOptions options)
      : side_(side),
        listener_(listen_on_loopback()),
        prover_(options.prover),
        endpoint_(make(side, &options)) {
    if (!endpoint_) return;
    const auto mine = AddressBlob::decode(endpoint_->address());
    must(mine.ok(), "an endpoint's own address");
    own_ = *mine;
    for (size_t team = 0; team < open_teams; ++team) open(team);
  }
  ~PlayedLink() {
    for (auto& channel : channels_) close(&channel);
    wire_.reset();
    listener_ = Socket();
  }
  PlayedLink(const PlayedLink&) = delete;
  PlayedLink& operator=(const PlayedLink&) = delete;

  // Both greet as they should.
  void greet() {
    if (side_ == Side::accepting) {
      connect_to_endpoint();
      send(encoded(greeting()));
    } else {
      post(&Channel::post_send, 0, {}, 8);
      go_on();
      wire_.emplace(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      send(encoded(greeting()));
    }
    go_on();
  }
  void connect_to_endpoint() {
    wire_.emplace(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const AddressBlob::Entry& entry : own_.entries) {
      if (entry.address.family != 4) continue;
      const SocketAddress to = to_socket_address(entry.address, entry.port);
      if (connect(wire_->fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0) break;
    }
    fcntl(wire_->fd(), F_SETFL, O_NONBLOCK);
  }
  Greeting greeting(bool invites = false) const {
    const bool connects = side_ == Side::accepting;
    Greeting greeting{wire_version, connects ? first : second, connects ? second : first, own_.key,
                      window};
    greeting.proves = own_.proves;
    greeting.invites = invites;
    if (prover_) greeting.key = *first_proof(*prover_, pair_key(), greeting);
    return greeting;
  }
  // The last proof, if the endpoint has answered that greeting.
  void prove(const Greeting& asked) const {
    std::array<std::byte, Greeting::bytes_with_proof> bytes{};
    Greeting answer;
    if (!prover_ || !wire_ || recv(wire_->fd(), bytes.data(), bytes.size(), 0) <= 0) return;
    if (!answer.decode(bytes.data())) return;
    send(*last_proof(*prover_, pair_key(), asked, answer));
  }
  static std::vector<std::byte> encoded(const Greeting& greeting) {
    std::vector<std::byte> bytes(greeting.size());
    greeting.encode(bytes.data());
    return bytes;
  }
  // As much as there is room for; nobody waits.
  void send(std::span<const std::byte> bytes) const {
    if (wire_) (void)!::send(wire_->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void go_on() {
    for (int i = 0; i < 3; ++i) endpoint_->progress();
  }
  // One operation of this side or the peer's.
  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0:
        return send(input.take(input.byte()));
      case 1:
      case 2:
        return send_frame(input);
      case 3:
        return post(&Channel::post_recv, input.byte() % open_teams, tag(input),
                    std::min<size_t>(input.one_of(lengths), most_payload));
      case 4:
        return post(&Channel::post_send, input.byte() % open_teams, tag(input),
                    std::min<size_t>(input.one_of(lengths), most_payload));
      case 5:
        return use_channel(input);
      case 6:
        return drain();
      default:
        endpoint_->wait(std::chrono::microseconds(0));
        return go_on();
    }
  }

 private:
  static constexpr size_t window = 1 << 16;

  static Socket listen_on_loopback() {
    Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const SocketAddress any = to_socket_address(loopback(), 0);
    must(bind(listener.fd(), reinterpret_cast<const sockaddr*>(&any.storage), any.size) == 0 &&
             listen(listener.fd(), 4) == 0,
         "a listener on loopback");
    return listener;
  }
  static IpAddress loopback() {
    IpAddress address;
    must(parse_ip("127.0.0.1", &address), "an address");
    return address;
  }
  static std::unique_ptr<Endpoint> make(Side side, TcpOptions* options) {
    options->self = side == Side::accepting ? second : first;
    options->interfaces = "127.0.0.1";
    options->window = window;
    auto made = make_tcp_endpoint(*options);
    must(made.ok(), "an endpoint on loopback");
    return std::move(*made);
  }
  // The peer has the endpoint's own key pair.
  PairKey pair_key() const { return *prover_->agree(first, second, own_.public_key); }
  Peer peer() const {
    AddressBlob blob{own_.host, Key{std::byte{42}}, {}};
    blob.proves = own_.proves;
    blob.public_key = own_.public_key;
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&bound), &size);
    if (side_ == Side::connecting) {
      blob.entries.push_back({loopback(), 8, ntohs(bound.sin_port)});
    }
    return {side_ == Side::accepting ? first : second, blob.encode(), "the peer"};
  }
  void open(size_t team) {
    auto opened = endpoint_->open(teams[team], peer());
    must(opened.ok(), "a channel");
    channels_[team] = std::move(*opened);
  }
  void close(std::unique_ptr<Channel>* channel) {
    if (*channel) (*channel)->withdraw();
    channel->reset();
  }
  void post(bool (Channel::*how)(Operation*), size_t team, const Tag& tag, size_t bytes) {
    if (!channels_[team]) return;
    posted_.emplace_back(tag, bytes);
    ((*channels_[team]).*how)(posted_.back().operation());
    go_on();
  }
  void use_channel(Input& input) {
    auto& channel = channels_[input.byte() % open_teams];
    switch (input.byte() % 4) {
      case 0:
        if (channel) channel->abort("enough");
        break;
      case 1:
        if (channel) must(!channel->aborted_by_peer().ok() || channel->carrier(), "it has a name");
        break;
      case 2:
        if (channel) (void)channel->failure();
        break;
      default: {
        const auto team = static_cast<size_t>(&channel - channels_.data());
        channel ? close(&channel) : open(team);
      }
    }
    go_on();
  }
  static Tag tag(Input& input) {
    constexpr uint64_t sizes[] = {0, 1, 100, 70000, Tag::of_message | 100, ~uint64_t{0}};
    constexpr uint32_t calls[] = {0, 1, 2, 0xffffffff};
    Tag tag;
    tag.call = input.one_of(calls);
    tag.ordinal = input.byte() % 3;
    tag.segment = input.byte() % 2;
    tag.signature = input.byte() % 2;
    tag.size = input.one_of(sizes);
    return tag;
  }
  // Of a frame's payload, what follows in the input, and zeros, unless it is to be cut short.
  void send_frame(Input& input) {
    constexpr uint32_t credits[] = {0, 1, 100, window, window + 1, 0xffffffff};
    Frame frame;
    frame.type = static_cast<FrameType>(input.byte() % 12);
    frame.charged = input.byte() % 2 == 1;
    frame.length = input.one_of(lengths);
    frame.team = input.one_of(teams);
    frame.tag = tag(input);
    frame.number = input.one_of(credits);
    std::vector<std::byte> bytes(Frame::bytes);
    frame.encode(bytes.data());
    const auto text = input.take(std::min<size_t>(input.byte(), frame.length));
    bytes.insert(bytes.end(), text.begin(), text.end());
    const size_t whole = Frame::bytes + std::min<size_t>(frame.length, most_payload);
    if (input.byte() % 8 != 7) bytes.resize(std::max(bytes.size(), whole));
    send(bytes);
    go_on();
  }
  void drain() const {
    std::array<std::byte, 65536> bytes;
    while (wire_ && recv(wire_->fd(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }

  const Side side_;
  Socket listener_;  // the played peer's
  const std::shared_ptr<Prover> prover_;
  std::list<Posted> posted_;
  std::unique_ptr<Endpoint> endpoint_;
  AddressBlob own_;
  std::optional<Socket> wire_;  // the peer's end
  std::array<std::unique_ptr<Channel>, open_teams> channels_;
};

void play(PlayedLink& link, Input& input) {
  constexpr int most_steps = 64;
  for (int i = 0; i < most_steps && !input.empty(); ++i) link.step(input);
}

TcpOptions with_upgrades(bool verbs) {
  TcpOptions options;
  if (verbs) {
    fake_verbs::reset({});
    VerbsOptions chosen;
    chosen.local = true;
    chosen.ring = 16384;
    chosen.table = &fake_verbs::table();
    options.upgrades.push_back(make_verbs_upgrades(chosen));
  }
  options.upgrades.push_back(make_shm_upgrades());
  return options;
}

}  // namespace

void fuzz_frames(std::span<const std::byte> bytes) {
  Input input(bytes);
  PlayedLink link(input.byte() % 2 == 0 ? Side::accepting : Side::connecting, {});
  link.greet();
  play(link, input);
}

void fuzz_offers(std::span<const std::byte> bytes) {
  Input input(bytes);
  const uint8_t how = input.byte();
  PlayedLink link(how % 2 == 0 ? Side::accepting : Side::connecting, with_upgrades(how & 2));
  link.greet();
  play(link, input);
}

// Connections that are not, or not yet, the peer's: what they send, and a greeting that is wrong in
// one byte, or is cut short; at times what the peer does. With proofs, or without.
void fuzz_strangers(std::span<const std::byte> bytes) {
  Input input(bytes);
  TcpOptions options;
  if (input.byte() % 2 == 1) options.prover = tls_prover();
  PlayedLink link(Side::accepting, options);
  constexpr int most_steps = 16;
  Greeting asked;
  for (int i = 0; i < most_steps && !input.empty(); ++i) {
    switch (input.byte() % 5) {
      case 0:
        link.connect_to_endpoint();
        break;
      case 1:
        link.send(input.take(input.byte()));
        break;
      case 2: {
        asked = link.greeting(input.byte() % 4 == 3);
        auto greeting = PlayedLink::encoded(asked);
        greeting[input.byte() % greeting.size()] ^= std::byte{input.byte()};
        greeting.resize(std::min<size_t>(greeting.size(), input.byte()));
        link.send(greeting);
        break;
      }
      case 3:
        link.prove(asked);
        break;
      default:
        link.step(input);
    }
    link.go_on();
  }
}

}  // namespace sluice::fuzz
