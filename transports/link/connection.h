// SPDX-License-Identifier: BSD-3-Clause
//
// One connection to the peer of a link: what its bytes pass through, the frames queued for it, and
// the reader of those that come. It exists before the two are connected, so that frames can be
// queued. Both sides greet first (transports/tcp/greeting.h), then the filter is made, if there is
// one, and the connecting side offers an upgrade (upgrade_negotiation.h).
//
// What ends the connection fails its link, which closes it. That is so where the peer has ended its
// side (a FIN has come), because it has ended, or given its link up. But if the connection was
// open, and only broke, the link may make another (resumption.h): what is queued, and the place in
// the frame that is on the way, stay here meanwhile.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "transports/link/conduit_stack.h"
#include "transports/link/diagnosis.h"
#include "transports/link/flow.h"
#include "transports/link/frame_reader.h"
#include "transports/link/link_shared.h"
#include "transports/link/link_state.h"
#include "transports/link/outbox.h"
#include "transports/link/shortage.h"
#include "transports/link/upgrade_negotiation.h"
#include "transports/link/vigil.h"
#include "transports/link/watch.h"
#include "transports/tcp/connector.h"
#include "transports/tcp/handshake.h"
#include "transports/transport.h"

namespace sluice {

// What a connection has of its link, and tells it.
class ConnectionEvents : public LinkState {
 public:
  using LinkState::LinkState;

  // Both sides have greeted.
  virtual void opened() = 0;
  // That was noticed of the peer. Drops the connection, or fails the link, if that is what the
  // table says (diagnosis.h). how: the details.
  virtual void noticed(Diagnosis::Sign sign, const Status& how, Diagnosis::Limit limit) = 0;
  // Reads the connection, and rails, although nothing is pending. True if anything moved.
  virtual bool read_idle() = 0;
  // The peer's BYE has come, and perhaps not yet all that rails bring.
  virtual void take_bye() = 0;
  // The peer has that rail.
  virtual void take_rail(uint32_t number) = 0;

 protected:
  ~ConnectionEvents() = default;
};

class Connection {
 public:
  enum class State : uint8_t {
    apart,  // not connected (yet, or any more)
    asked,  // accepting side: the peer has greeted, and is not known yet
    open,   // both have greeted
    parted  // it was open, and broke; another one may go on
  };

  Connection(ConnectionEvents& link, LinkShared& shared, const PeerIdentity& peer,
             const Connector& connector, UpgradeNegotiation::Side side, FrameReader reader);

  // Whether there is a socket.
  explicit operator bool() const { return bool(conduits_); }
  bool has_greeted_us() const { return state_ >= State::asked; }
  bool is_parted() const { return state_ == State::parted; }
  Diagnosis::Stage stage() const;

  // Connected by this side, which has greeted, and got this answer.
  void greet(Socket socket, bool within_host, const Greeting& answer);
  // Accepted from the peer, which has greeted. Unless the peer is known, begin() must follow.
  void accept(Socket socket, bool within_host, const Greeting& theirs);
  // It broke, all that came has been read, and another one may go on.
  void disconnect();
  // Reads what came before it broke, or what has come if it has not. True if anything moved.
  bool read_rest();
  // Parted: goes on over this socket, on which the two have greeted, and their counts agree.
  void resume(Socket socket, bool within_host, const Greeting& theirs);
  // The peer is known, and has greeted: what remains of this side's greeting, and the filter.
  void begin();

  // Moves what can be moved. True if anything moved.
  bool drive();
  // Reads what has arrived, as far as the link wants any. True if anything moved.
  bool read();
  // Parses what has been read already.
  void parse();
  // After something was queued: sends what can be sent.
  void flush_now();
  // Something is to be sent, and can be.
  bool has_to_send() const {
    return (!out_.empty() || conduits_.filter_waits()) && send_error_ == 0;
  }
  // The events on which drive() may have something to do (descriptor -1 without a socket).
  pollfd poll_for() const;
  // It is open, and stays on its TCP socket, or on a filter over that.
  bool is_settled() const;
  // Before this process polls: see Link.
  bool may_sleep();
  // Called from time to time while something is pending: checks whether the peer is still there.
  void check_peer();
  // Nothing is pending any more.
  void rest() { watch_.rest(); }

  // Everything that was to be sent arrives although this process ends now, or it never will.
  bool all_sent() const {
    const bool sent = out_.empty() && (!conduits_ || conduits_.way_out().delivered());
    return sent || send_error_ != 0;
  }
  // Sends BYE after all queued frames.
  void say_bye();
  // The peer's BYE has come: nothing more is read.
  bool has_bye() const { return has_bye_; }
  // The peer's kernel has acknowledged everything but perhaps the BYE.
  bool flushed();
  // Drops everything, and tells the peer so.
  void close();

  // Its parts, for what concerns one of them alone.
  Outbox& out() { return out_; }
  FrameReader& reader() { return reader_; }
  ConduitStack& conduits() { return conduits_; }
  const ConduitStack& conduits() const { return conduits_; }

 private:
  enum class Sending : uint8_t {
    ready,
    blocked,  // the conduit took less than offered last time
    parted
  };
  enum class Turn : uint8_t {
    first,
    later  // it takes the place of one that broke
  };
  enum class Goodbye : uint8_t {
    unsaid,
    said,  // the BYE is queued
    shut   // the socket sends no more
  };

  void fail(const Status& status);
  void end(int error, const std::string& how);

  void connect(Socket socket, bool within_host);
  void open();
  void push_greeting();
  void answer();
  void learn(const Greeting& theirs);
  void negotiate(const Status& outcome);
  void advance_upgrade();
  bool tries_upgrade() const { return conduits_.upgrade() != nullptr && !conduits_.uses_upgrade(); }
  void try_upgrade();
  void leave_conduit();

  bool flush();
  bool is_doubtful() { return doubt_.is_due() && ask_about_doubt(); }
  bool ask_about_doubt();
  bool cannot_send();
  bool report_gets();
  void end_gets();
  void finish_sends(Operation* sent);
  bool sits_out(int error);
  void note_send_error(int error);
  void end_sending();

  bool step();
  void receive(FrameType type);
  void note_end(int error);
  void note_loss(int error);
  bool has_problem(const Conduit& conduit);
  bool is_opening() const;
  // No network breaks it: it ends with the peer's process.
  bool is_local() const { return shared_.proves_host() && conduits_.within_host(); }
  void check_acknowledgement();
  void check_host();
  void check_handshake();
  void note_stall(const Status& why);

  ConnectionEvents& link_;
  LinkShared& shared_;
  const PeerIdentity& peer_;
  const Connector& connector_;
  ConduitStack conduits_;
  State state_ = State::apart;
  Turn turn_ = Turn::first;
  Greeting theirs_;  // once the peer has greeted
  Outbox out_;
  UpgradeNegotiation negotiation_;
  Sending sending_ = Sending::ready;
  Goodbye goodbye_ = Goodbye::unsaid;
  int send_error_ = 0;  // errno; the peer's earlier bytes may still be read
  Shortage shortage_;   // of memory in the kernel, to send
  bool has_bye_ = false;

  FrameReader reader_;
  Watch watch_;
  Doubt doubt_;

  // Of the filter's handshake: since when it is under way (zero: it is not), and looks at it since
  // it should have been done.
  std::chrono::steady_clock::time_point shaking_since_{};
  int overdue_ = 0;
};

}  // namespace sluice
