// SPDX-License-Identifier: BSD-3-Clause
//
// What the bytes of one connection pass through. Below is the base: the socket, or a filter over
// it. An upgrade, once both sides have agreed on one (upgrade_negotiation.h), carries the bytes of
// each direction from some frame on, and the base only wake-up bytes.
#pragma once

#include <memory>
#include <utility>

#include "transports/conduit.h"
#include "transports/tcp/socket.h"

namespace sluice {

class ConduitStack {
 public:
  ConduitStack() = default;
  ConduitStack(const ConduitStack&) = delete;
  ConduitStack& operator=(const ConduitStack&) = delete;

  // Without a socket it is not connected (yet, or any more), and carries nothing.
  explicit operator bool() const { return bool(socket_); }
  const Socket& socket() const { return socket_; }
  // is_proved: that it is within this host, not only that both sides say so.
  void connect(Socket socket, bool within_host, bool is_proved) {
    socket_ = std::move(socket);
    within_host_ = within_host;
    if (within_host && is_proved) carrier_ = "unix";
  }
  bool within_host() const { return within_host_; }
  // The socket itself, for a filter.
  Conduit& plain() { return plain_; }
  // Before anything but the greetings has gone either way.
  void add_filter(std::unique_ptr<Conduit> filter) {
    filter_ = std::move(filter);
    in_ = out_ = filter_.get();
    carrier_ = filter_->name();
  }
  // Drops everything, and what it carries with it.
  void close() {
    in_ = out_ = &plain_;
    upgrade_.reset();
    filter_.reset();
    socket_.close();
  }

  // nullptr: none.
  Conduit* filter() const { return filter_.get(); }
  Conduit& base() { return filter_ ? *filter_ : plain_; }
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

  // The name of what the bytes travel over, once it serves both directions.
  const char* carrier() const { return carrier_; }

 private:
  void note_upgraded() {
    if (in_ == out_) carrier_ = upgrade_->name();
  }

  Socket socket_;
  bool within_host_ = false;
  SocketConduit plain_{socket_};
  std::unique_ptr<Conduit> filter_;
  std::unique_ptr<Upgrade> upgrade_;
  Conduit* in_ = &plain_;
  Conduit* out_ = &plain_;
  const char* carrier_ = "tcp";
};

}  // namespace sluice
