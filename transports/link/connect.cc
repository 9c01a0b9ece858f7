// SPDX-License-Identifier: BSD-3-Clause
//
// How a link connects and how it ends.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "src/base/random.h"
#include "transports/link/link.h"
#include "transports/tcp/local_socket.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

// A host is taken for dead after 30 s without an answer and at least 3 tries.
constexpr std::chrono::seconds host_silence{30};
constexpr unsigned host_tries = 3;

}  // namespace

Status Link::know(const Peer& peer) try {
  label_ = peer.label;
  host_name_ = peer.host;
  if (known_) return {};
  auto blob = AddressBlob::decode(peer.address);
  if (!blob.ok()) return blob.status().with(peer.label);
  if (!conduits_) same_host_ = may_be_within_host(*blob);
  candidates_ =
      candidates(*blob, shared_.context.host, shared_.context.all, shared_.context.chosen);
  if (same_host_ && shared_.context.proves_host()) add_local_candidate(*blob);
  peer_key_ = blob->key;
  peer_public_ = blob->public_key;
  peer_proves_ = blob->proves;
  known_ = true;
  if (shared_.context.options.filter && !proves()) {
    fail({Code::mismatch, label_ + " cannot encrypt, this process wants to"});
  }
  if (conduits_) begin_frames();  // the peer connected first
  return {};
} catch (const std::bad_alloc&) {
  if (known_) fail(shared_.context.no_memory_to_connect);
  return shared_.context.no_memory_to_connect;
}

// Hosts that have other names are other hosts. (Two virtual machines that were resumed from one
// snapshot say the same of their kernels.)
bool Link::may_be_within_host(const AddressBlob& peer) const {
  const bool same_name =
      !shared_.context.proves_host() || host_name_ == shared_.context.options.host;
  return same_name && is_same_host(peer, shared_.context.host);
}

void Link::add_local_candidate(const AddressBlob& peer) {
  if (peer.entries.empty()) return;
  candidates_.insert(candidates_.begin(), {{}, peer.entries.front().port, {}, true, true});
}

bool Link::dials_locally() const { return !candidates_.empty() && candidates_.front().local; }

// True once connected.
bool Link::dial() try { return dial_further(); } catch (const std::bad_alloc&) {
  run_short(shared_.context.no_memory_to_connect);
  return false;
}

// A connection that is half made goes.
void Link::run_short(const Status& lack) {
  if (conduits_) return fail(lack);
  dialer_.reset();
  for (auto& [team, stream] : streams_) stream->lose(lack);
}

bool Link::dial_further() {
  if (!dialer_) {
    if (const Status begun = begin_to_dial(); !begun.ok()) {
      begun.code() == Code::memory ? run_short(shared_.context.no_memory_to_connect) : fail(begun);
      return false;
    }
  }
  switch (dialer_->advance()) {
    case Dialer::State::dialing:
      return false;
    case Dialer::State::failed:
      if (dialer_->ran_short()) {
        run_short(unreachable());
        return false;
      }
      if (dials_locally() && !dialer_->refused()) return dial_between_hosts();
      fail(unreachable());
      return false;
    case Dialer::State::connected:
      break;
  }
  take_socket(dialer_->take());
  const std::optional<Greeting> answer = dialer_->answer();
  dialer_.reset();
  if (!answer) {
    greet();
    return true;
  }
  introduced_ = greeted_ = true;
  apply(*answer);
  if (status_.ok()) begin_frames();
  if (status_.ok()) negotiate(negotiation_.offer());
  return status_.ok();
}

// The peer has no local socket here, so it is on another host whatever it says, or in another
// container, or runs as another user.
bool Link::dial_between_hosts() {
  log(Level::debug, "%s is taken to be on another host: %s", label_.c_str(),
      dialer_->failures().c_str());
  same_host_ = false;
  candidates_.erase(candidates_.begin());
  dialer_.reset();
  return dial_further();
}

// Connected, or accepted.
void Link::take_socket(Socket socket) {
  if (shared_.context.proves_host()) same_host_ = is_local(socket);
  conduits_.connect(std::move(socket),
                    shared_.context.proves_host() && same_host_ ? "unix" : "tcp");
  negotiation_.begin(same_host_);
}

Status Link::begin_to_dial() {
  const auto key = proves() ? agree() : PairKey{};
  if (!key.ok()) return key.status();
  const auto greeting = introduction(*key);
  if (!greeting.ok()) return greeting.status();
  const size_t count = dials_locally() ? 1 : candidates_.size();
  dialer_ = std::make_unique<Dialer>(shared_.context, std::span(candidates_).first(count),
                                     *greeting, *key);
  return {};
}

// The secret of this process and the peer.
Result<PairKey> Link::agree() const {
  auto key =
      shared_.context.options.prover->agree(shared_.context.options.self, process_, peer_public_);
  if (!key.ok()) return key.status().with(label_);
  return key;
}

Status Link::unreachable() const {
  const std::string who = "cannot connect to " + label_ + ": ";
  if (candidates_.empty()) {
    return {Code::unavailable,
            who + "it has no address that this process may use; see SLUICE_TCP_INTERFACES of both"};
  }
  if (dialer_->refused()) {
    return {Code::peer_lost, who + "it has given up its connection to this process"};
  }
  return {dialer_->code(), who + dialer_->failures() + dialer_->hints()};
}

// With proofs, this side's greeting as the connecting side. key: for these.
Result<Greeting> Link::introduction(const PairKey& key) const {
  Greeting made{wire_version, shared_.context.options.self, process_, peer_key_,
                shared_.context.options.window};
  if (!proves()) return made;
  made.proves = true;
  made.filters = filters();
  if (Status drawn = draw_random(made.nonce.data(), made.nonce.size()); !drawn.ok()) return drawn;
  const auto proof = first_proof(*shared_.context.options.prover, key, made);
  if (!proof.ok()) return proof.status();
  made.key = *proof;
  return made;
}

// Without proofs: queues the greeting before everything else.
void Link::greet() {
  const auto words = introduction({});
  if (!words.ok()) return fail(words.status());
  Outgoing greeting{Frame{FrameType::data, false, Greeting::bytes}};
  greeting.bare = true;
  greeting.owned = std::make_unique<std::byte[]>(Greeting::bytes);
  words->encode(greeting.owned.get());
  out_.push_front(std::move(greeting));
  introduced_ = true;
}

void Link::accept(Socket socket, const Greeting& greeting) try {
  if (!expects()) return;  // closes a second connection
  take_socket(std::move(socket));
  greeted_ = true;
  if (known_ && !proves()) {
    greet();
    flush();
  }
  apply(greeting);
  if (known_ && status_.ok()) begin_frames();
  list();
} catch (const std::bad_alloc&) {
  fail(shared_.context.no_memory_to_connect);
}

// The peer is known, and has greeted: what remains of this side's greeting, and the filter. Both
// sides prove, and filter this connection, or neither does.
void Link::begin_frames() {
  if (peer_has_proved_) introduced_ = true;
  if (!introduced_ && !proves()) {
    greet();
    flush();
  }
  if (!status_.ok()) return;
  const std::string same = ": is SLUICE_TLS the same everywhere?";
  if (peer_filters_ != filters()) {
    const std::string whose = peer_filters_
                                  ? " wants an encrypted connection, this process does not"
                                  : " wants a connection in clear, this process an encrypted one";
    return fail({Code::mismatch, label_ + whose + same});
  }
  if (peer_has_proved_ != proves()) {
    return fail({Code::mismatch, label_ + " said a key in place of a proof, or a proof in place of "
                                          "its key: is OpenSSL's module the same everywhere?"});
  }
  if (const Status opened = open_filter(); !opened.ok()) fail(opened);
}

// Called when both sides' greetings are known to come first over this connection.
Status Link::open_filter() {
  if (!filters() || conduits_.filter() != nullptr) return {};
  const auto key = agree();
  if (!key.ok()) return key.status();
  const ConduitEnds ends{shared_.context.options.self, process_, *key, connects(), host_name_};
  auto made = shared_.context.options.filter->make(conduits_.plain(), ends);
  if (!made.ok()) return made.status().with(label_);
  conduits_.add_filter(std::move(*made));
  return {};
}

// Connecting side: reads the peer's answer to the greeting. True if it has come.
bool Link::take_greeting() {
  if (inbox_.empty()) return false;
  Greeting greeting;
  const bool whole = inbox_.size() >= Greeting::bytes;
  const bool foreign =
      !Greeting::may_begin(inbox_.data(), inbox_.size()) ||
      (whole && !(greeting.decode(inbox_.data()) && shared_.context.answers(greeting, process_)));
  if (foreign) {
    lost("an invalid greeting came from its address: damaged, or another program is there");
  } else if (whole) {
    inbox_.consume(Greeting::bytes);
    greeted_ = true;
    apply(greeting);
    if (status_.ok()) begin_frames();
    if (status_.ok()) negotiate(negotiation_.offer());
  }
  return greeted_ && status_.ok();
}

// Fails the link if wire versions or windows differ, or what the two sides mean to encrypt.
void Link::apply(const Greeting& greeting) {
  const auto differs = [&](const char* what, uint64_t theirs, uint64_t ours) {
    fail({Code::mismatch, label_ + " has " + what + " " + std::to_string(theirs) +
                              ", this process has " + std::to_string(ours)});
  };
  if (greeting.version != wire_version) {
    differs("wire version", greeting.version, wire_version);
  } else if (greeting.window != shared_.context.options.window) {
    differs("a TCP window of", greeting.window, shared_.context.options.window);
  }
  peer_has_proved_ = greeting.proves;
  peer_filters_ = greeting.filters;
}

void Link::say_bye() {
  if (!conduits_ || !introduced_ || said_bye_) return;
  out_.push({Frame{FrameType::bye}});
  said_bye_ = true;
  flush();
}

// The BYE itself need not have arrived, because no rank waits for it.
bool Link::flushed() {
  end_sending();
  if (!conduits_ || !introduced_ || send_error_ != 0) return true;
  tcp_info info{};
  socklen_t size = sizeof(info);
  int left = 0;
  if (getsockopt(conduits_.socket().fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      info.tcpi_state == TCP_CLOSE || ioctl(conduits_.socket().fd(), SIOCOUTQ, &left) != 0) {
    return true;
  }
  constexpr int fin = 1, most_of_filter = 64;  // what encryption adds to a BYE
  const int bye_and_fin = Frame::bytes + fin + (conduits_.filter() != nullptr ? most_of_filter : 0);
  return out_.empty() && conduits_.way_out().delivered() && left <= bye_and_fin;
}

// If it was the peer itself, it does not come again. (Who only replayed its greeting does not keep
// the peer from coming.)
void Link::look_for_missed() {
  const auto limit = shared_.context.options.connect_timeout;
  if (missed_ == decltype(missed_){} || std::chrono::steady_clock::now() - missed_ < limit) return;
  lost("it connected, and ended before this process answered");
}

void Link::look_after() {
  if (awaited()) {
    look_for_missed();
    look_for_listener();
    look_for_prover();
  } else if (conduits_) {
    hear();
    look_for_life();
    if (conduits_.filter() != nullptr) look_for_handshake();
  }
}

// What remains after this loop is small or deferred; the next call reads it.
void Link::look_for_end() {
  pollfd end{conduits_.socket().fd(), POLLRDHUP, 0};
  if (!conduits_ || wanted() || poll(&end, 1, 0) <= 0) return;
  hear();
  poll_idle_ = true;
  while (read()) {
  }
  poll_idle_ = false;
}

void Link::look_around() {
  if (!conduits_ || wanted()) return;
  hear();
  poll_idle_ = true;
  (void)read();
  poll_idle_ = false;
}

// If a process dies before it connects, no connection closes. On this host its death shows because
// its port is free again.
void Link::look_for_listener() {
  if (!known_ || !same_host_ || candidates_.empty()) return;
  const bool gone = std::all_of(candidates_.begin(), candidates_.end(), [](const Candidate& each) {
    return each.local || is_free(each.address, each.port);
  });
  if (gone) lost("it ended before it connected");
}

// The peer can't come if this process can prove nothing any more. It may be no better off, and
// can't say so then.
void Link::look_for_prover() {
  if (!status_.ok() || !known_ || !proves()) return;
  const Status state = shared_.context.options.prover->state();
  if (!state.ok()) fail(state.with(label_));
}

// Once the peer's part of the filter's handshake has begun to come, the rest must follow. (A peer
// that is busy may begin late.) This process looks twice after the deadline, because it may have
// been busy itself, and reads between two looks.
void Link::look_for_handshake() {
  const auto now = std::chrono::steady_clock::now();
  if (conduits_.filter()->handshake() != Conduit::Handshake::under_way) {
    shaking_since_ = {};
  } else if (shaking_since_ == std::chrono::steady_clock::time_point{}) {
    shaking_since_ = now;
    overdue_ = 0;
  } else if (now - shaking_since_ > shared_.context.options.connect_timeout && ++overdue_ > 1) {
    fail({Code::timeout,
          "the handshake with " + label_ + " came to a halt: " + conduits_.filter()->name()});
  }
}

// A dead host sends nothing. Keepalive finds that while this side only waits; this function finds
// it while sent data is not acknowledged.
void Link::look_for_life() {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(conduits_.socket().fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  const std::chrono::milliseconds silence(info.tcpi_last_ack_recv);
  if (silence > host_silence && info.tcpi_retransmits + info.tcpi_probes >= host_tries) {
    lost("its host has not answered for " + std::to_string(silence.count() / 1000) + " s");
  }
}

}  // namespace sluice
