// SPDX-License-Identifier: BSD-3-Clause
//
// The connection to one process, and what its teams make of it.
//
// Which side connects is fixed: the lower process does, when it first needs to; the other waits for
// it. While nothing is pending on a link it is not read: what comes stays in the socket. Only now
// and then it is looked for whether the peer has ended (look_for_end), and who waits long for
// others asks whether it has aborted a team (look_around). Once the connection stands between
// processes of one host, the connecting side offers a shortcut; each side's bytes leave the socket
// for it behind a frame that says so (FrameType::shift).
#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/tcp/dialer.h"
#include "transports/tcp/inbox.h"
#include "transports/tcp/outbox.h"
#include "transports/tcp/shared.h"
#include "transports/tcp/stream.h"
#include "transports/tcp/wire.h"
#include "transports/transport.h"

namespace sluice {

struct TeamHash {
  size_t operator()(const TeamId& team) const {
    return (team.leader.low ^ team.leader.high) * 0x9E3779B97F4A7C15 + team.number;
  }
};

class Link {
 public:
  // Receives of so many bytes and more are read straight into place.
  static constexpr size_t large = size_t{8} << 10;

  Link(TcpShared& shared, const ProcessId& process);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Makes the peer known: its address and name. Again and again, with every team.
  Status know(const Peer& peer);

  // The team's stream, made if there is none.
  Stream& stream(const TeamId& team);
  void close(Stream& stream);

  // After a receive was posted: goes through what has been read already.
  void look();
  // After anything was posted: connects if this is the side that does, and sends what can be sent.
  void kick();

  // The other side has connected.
  void accept(Socket socket, const Greeting& greeting);

  // Moves what can be moved. True if anything moved.
  bool drive();
  // Once in a while: whether the peer is still there.
  void look_after();
  // The same while nothing is pending: if the peer has ended, reads what it sent before, as far as
  // windows allow, and closes the connection. Teams that go on to use it hear how it ended.
  void look_for_end();
  // Reads some of what has come though nothing is pending.
  void look_around();
  // Ended, without a stream, and longer ago than so many others: nobody will ask for it.
  bool forgotten() const;

  // Something is to be done, or expected.
  bool pending() const;
  // After drive(): false if it is not to be in TcpShared::pending any longer.
  bool stays_listed();
  // When drive() may do something: upon these events (no descriptor if none are its own), and while
  // it dials also as time passes.
  pollfd poll_for() const;
  // The same for all that it dials, to sleep over.
  void add_to(std::vector<pollfd>& polls) const;
  bool dials() const { return bool(dialer_); }
  // drive() is quicker than to ask poll whether it may do something.
  bool quick() const { return sends_short_ || reads_short_; }
  // This process is about to poll: false if there is something to do now, of which poll knows
  // nothing. And when nobody polls any more.
  bool may_sleep();
  void awake();
  // Takes what came over a socket that carries no frames any more. True if anything did.
  bool hear() { return reads_short_ && shortcut_ && shortcut_->hear(); }
  // What its bytes go over: "tcp", or its shortcut's name.
  const char* carrier() const;
  // It waits for the other side to connect.
  bool awaited() const;
  // The kernel has all that was to be sent, or never will.
  bool has_told() const { return out_.empty() || send_error_ != 0 || !status_.ok(); }

  // BYE, behind all else.
  void say_bye();
  // The peer's kernel has all that was sent.
  bool flushed() const;

  // Ends all that is pending with this, and all that comes.
  void fail(const Status& status);

  // For streams.
  struct Demand {
    size_t receives = 0;  // posted or landing
    size_t sends = 0;     // not yet in the kernel's hands
    size_t large = 0;     // posted receives of `large` bytes or more
  } demand;
  TcpShared& shared() { return shared_; }
  Outbox& out() { return out_; }
  const std::string& label() const { return label_; }
  const Status& status() const { return status_; }
  Landing* landing_of(const Stream& stream) {
    return landing_stream_ == &stream ? &landing_ : nullptr;
  }
  // The socket can't be used any more: a frame is broken off.
  void tear() { torn_ = true; }

 private:
  bool connects() const { return shared_.options.self < process_; }
  bool wanted() const {
    return demand.receives > 0 || demand.sends > 0 || (curious_ && status_.ok());
  }
  void list();

  bool dial();
  Status unreachable() const;
  Greeting introduction() const;
  void greet();
  bool take_greeting();
  void heed(const Greeting& greeting);
  void offer_shortcut();
  void look_for_shortcut();
  void take_offer();
  void take_shift();
  void take_decline();
  void shift_sending();
  Conduit& way_out() { return sends_short_ ? *shortcut_ : static_cast<Conduit&>(plain_); }
  Conduit& way_in() { return reads_short_ ? *shortcut_ : static_cast<Conduit&>(plain_); }
  void look_for_listener();
  void look_for_life();

  bool flush();
  void finish_sends(Operation* sent);
  void note_send_error(int error);
  bool read();
  void note_end(int error);
  Inbox::Read read_once();
  void parse();
  bool step();
  bool puts_off(const Frame& frame);
  void take_frame(const Frame& frame);
  Stream* find_stream(const TeamId& team, bool make);
  void begin_landing(Stream* to, const Frame& frame);
  bool deposit();
  void finish_landing();
  void take_abort(const TeamId& team);
  void lost(const std::string& how);

  TcpShared& shared_;
  const ProcessId process_;
  std::string label_;
  std::vector<Candidate> candidates_;
  Key peer_key_{};
  bool known_ = false;  // the three above
  bool same_host_ = false;

  std::unique_ptr<Dialer> dialer_;
  Socket socket_;
  SocketConduit plain_{socket_};
  std::unique_ptr<Shortcut> shortcut_;  // offered, or in use
  bool sends_short_ = false, reads_short_ = false;
  bool settled_ = false;     // whether there will be one
  bool curious_ = false;     // reads though nothing is pending
  uint32_t looks_ = 0;       // that might have been taken
  bool introduced_ = false;  // the greeting is sent, or queued
  bool greeted_ = false;     // by the peer
  bool said_bye_ = false;
  bool torn_ = false;
  bool listed_ = false;   // in TcpShared::pending
  bool blocked_ = false;  // the conduit took less than there was when last asked
  int send_error_ = 0;    // what the peer sent before may still be read
  Status status_;
  uint64_t ended_ = 0;  // which of all links that did

  Outbox out_;
  Inbox inbox_;
  int put_offs_ = 0;  // of the frame that is next in the inbox
  bool landing_now_ = false;
  Landing landing_;
  Stream* landing_stream_ = nullptr;  // nullptr: its payload is dropped
  std::string text_;                  // payload of a frame that is the link's own

  std::unordered_map<TeamId, std::unique_ptr<Stream>, TeamHash> streams_;
  Stream* latest_ = nullptr;                         // the stream asked for last
  std::unordered_set<TeamId, TeamHash> dead_teams_;  // closed with something still to come
  // The latest aborts of teams that have no stream: not opened yet, or never to be.
  struct EarlyAbort {
    TeamId team;
    std::string cause;
  };
  std::vector<EarlyAbort> early_aborts_;
};

}  // namespace sluice
