// SPDX-License-Identifier: BSD-3-Clause
//
// What the bytes of one connection pass through. Below is the base: the socket, or a filter over
// it. An upgrade, once both sides have agreed on one (upgrade_negotiation.h), carries the bytes of
// each direction from some frame on, and the base only wake-up bytes.
//
// How a socket is closed tells the peer what has become of the link. A FIN ends it; a reset only
// breaks the connection (resumption.h). But close(2) resets a connection if unread bytes are in the
// socket or on their way. So the socket of a link that has ended is only shut down, and closed once
// the peer has ended its side; bytes that arrive meanwhile are dropped.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <utility>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/socket.h"

namespace sluice {

// Carries nothing. It takes a filter's place until the filter is made, so nothing passes
// unencrypted.
class NoConduit final : public Conduit {
 public:
  const char* name() const override { return "tcp"; }
  Moved write(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  Moved read(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  short interest(bool, bool) const override { return 0; }
};

class ConduitStack {
 public:
  ConduitStack() = default;
  ConduitStack(const ConduitStack&) = delete;
  ConduitStack& operator=(const ConduitStack&) = delete;

  // Without a socket it is not connected (yet, or any more), and carries nothing.
  explicit operator bool() const { return bool(socket_); }
  const Socket& socket() const { return socket_; }
  // is_proved: that it is within this host, not only that both sides say so. filters: carries
  // nothing before a filter is added.
  void connect(Socket socket, bool within_host, bool is_proved, bool filters) {
    left_.reset();
    left_base_.reset();
    socket_ = std::move(socket);
    plain_.renew();
    in_ = out_ = base_ = filters ? static_cast<Conduit*>(&none_) : &plain_;
    carrier_ = "tcp";
    within_host_ = within_host;
    if (within_host && is_proved) carrier_ = "unix";
  }
  bool within_host() const { return within_host_; }
  // A filter is still to be added.
  bool lacks_filter() const { return base_ == &none_; }
  // The socket itself, for a filter.
  Conduit& plain() { return plain_; }
  void add_filter(std::unique_ptr<Conduit> filter) {
    filter_ = std::move(filter);
    in_ = out_ = base_ = filter_.get();
    carrier_ = filter_->name();
  }
  // The connection has broken, or another is to take its place: keeps only an upgrade, which may
  // have what the two had written to it.
  void part() {
    reads_left_ = reads_upgraded();
    sends_left_ = sends_upgraded();
    if (uses_upgrade()) {
      left_ = std::move(upgrade_);
      left_base_ = std::move(filter_);
    }
    drop_conduits();
    reset_when_closed(socket_, true);
    socket_.close();
  }
  // That upgrade, to be read: the peer, which may not know of the break, may write more to it.
  // nullptr: there is none.
  Upgrade* left() const { return reads_left_ ? left_.get() : nullptr; }
  // What becomes of all that has been sent if the connection breaks, or of what was.
  Upgrade::Output output() {
    if (left_ && sends_left_) return left_->output();
    return upgrade_ && sends_upgraded() ? upgrade_->output() : Upgrade::Output::lost;
  }
  // Ends the connection, and drops everything that it carries.
  void end() {
    left_.reset();
    left_base_.reset();
    drop_conduits();
    if (!socket_) return;
    shutdown(socket_.fd(), SHUT_WR);
    ended_ = std::move(socket_);
    (void)let_go(false);
  }
  // Closes the socket of a connection that this side has ended, if the peer has, too, or at_once.
  // True if it did.
  bool let_go(bool at_once) {
    if (!ended_ || !(at_once || drain(ended_))) return false;
    ended_.close();
    return true;
  }

  // nullptr: none.
  Conduit* filter() const { return filter_.get(); }
  Conduit& base() { return *base_; }
  Conduit& way_in() const { return *in_; }
  Conduit& way_out() const { return *out_; }
  // Bytes of the filter's own wait in it.
  bool filter_waits() const { return filter_ && filter_->unsent() > 0; }

  // Offered, accepted, or in use; nullptr: none.
  Upgrade* upgrade() const { return upgrade_.get(); }
  // One that is not in use (nullptr: none) in place of another that is not.
  void set_upgrade(std::unique_ptr<Upgrade> upgrade) { upgrade_ = std::move(upgrade); }
  // From now on, this direction's bytes go over the upgrade.
  void send_upgraded() {
    out_ = upgrade_.get();
    upgrade_->take_base();
    note_upgraded();
  }
  void read_upgraded() {
    in_ = upgrade_.get();
    note_upgraded();
  }
  bool sends_upgraded() const { return out_ == upgrade_.get(); }
  bool reads_upgraded() const { return in_ == upgrade_.get(); }
  bool uses_upgrade() const { return sends_upgraded() || reads_upgraded(); }
  // Reads wake-up bytes once the socket carries no more frames. True if there was anything.
  bool hear() { return reads_upgraded() && upgrade_->hear(); }

  // The peer's memory, if this side can read it now, and nothing is to be encrypted; else nullptr.
  PeerMemory* memory() const {
    const bool is_upgraded = upgrade_ && in_ == upgrade_.get() && out_ == upgrade_.get();
    return is_upgraded && !filter_ ? upgrade_->memory() : nullptr;
  }

  // What the bytes travel over: its name, once it serves both directions.
  const char* carrier() const { return carrier_; }

 private:
  void note_upgraded() {
    if (in_ == out_) carrier_ = upgrade_->name();
  }
  void drop_conduits() {
    in_ = out_ = base_ = &none_;
    upgrade_.reset();
    filter_.reset();
  }

  Socket socket_;
  Socket ended_;  // sends and reads no more
  bool within_host_ = false;
  NoConduit none_;
  SocketConduit plain_{socket_};
  std::unique_ptr<Conduit> filter_;
  std::unique_ptr<Upgrade> upgrade_;
  std::unique_ptr<Conduit> left_base_;  // under left_, if that was over a filter
  std::unique_ptr<Upgrade> left_;
  bool reads_left_ = false, sends_left_ = false;
  Conduit* base_ = &none_;
  Conduit* in_ = &none_;
  Conduit* out_ = &none_;
  const char* carrier_ = "tcp";
};

// Makes the filter that it lacks, if it does, between this process and the peer, which is known.
// Called when both sides' greetings are known to come first over the connection. May throw
// std::bad_alloc.
Status add_filter(const TcpContext& context, const PeerIdentity& peer, ConduitStack& conduits);

}  // namespace sluice
