// SPDX-License-Identifier: BSD-3-Clause
//
// The connection to one process, and the streams of the teams that share it.
//
// The process with the lower id connects, when it first needs to; the other waits for that. While
// nothing is pending on a link, it is not read, and incoming bytes stay in the socket. There are
// two exceptions: when a link is made and after sleeps, the driver checks whether peers have ended,
// so that processes that come and go leave no descriptors (look_for_end); and a rank that waits
// long for others checks whether the peer has aborted a team (look_around). Below the frames lie
// conduits (conduit_stack.h). The connecting side offers an upgrade once connected, if a maker
// serves both processes (upgrade_negotiation.h).
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/status.h"
#include "transports/link/conduit_stack.h"
#include "transports/link/frame.h"
#include "transports/link/inbox.h"
#include "transports/link/link_shared.h"
#include "transports/link/outbox.h"
#include "transports/link/stream.h"
#include "transports/link/upgrade_negotiation.h"
#include "transports/tcp/dialer.h"
#include "transports/tcp/greeting.h"
#include "transports/transport.h"

namespace sluice {

struct TeamHash {
  size_t operator()(const TeamId& team) const {
    return (team.leader.low ^ team.leader.high) * 0x9E3779B97F4A7C15 + team.number;
  }
};

class Link {
 public:
  // Receives of at least this size are read directly into place.
  static constexpr size_t large = size_t{8} << 10;

  Link(LinkShared& shared, const ProcessId& process);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Tells the link the peer's address and name. Called for every team; only the first address
  // counts.
  Status know(const Peer& peer);

  // The team's stream, made if there is none.
  Stream& stream(const TeamId& team);
  void close(Stream& stream);

  // After a receive was posted: parses what has been read already.
  void look();
  // After anything was posted: connects if this side has to, and sends what can be sent.
  void flush_now();

  // Whether the other side may still connect.
  bool expects() const { return !connects() && !conduits_ && status_.ok(); }
  // The other side, which connects, may not: this side has given up.
  bool refuses() const { return !connects() && !status_.ok(); }
  // It is connected, or was: what came before it ended may be an abort.
  bool has_met() const { return greeted_ || !status_.ok(); }
  // know() has succeeded.
  bool is_known() const { return known_; }
  std::optional<PublicKey> public_key() const {
    return peer_proves_ ? std::optional(peer_public_) : std::nullopt;
  }
  // Called when the other side has connected.
  void accept(Socket socket, const Greeting& greeting);
  // Called when somebody greeted as the peer, and left without the last proof.
  void note_missed() { missed_ = std::chrono::steady_clock::now(); }

  // Moves what can be moved. True if anything moved.
  bool drive();
  // Called from time to time while something is pending: checks whether the peer is still there.
  void look_after();
  // The same while nothing is pending. If the peer has ended, reads what it sent before, as far as
  // windows allow, and closes the connection. Teams that use the link later get the reason.
  void look_for_end();
  // Reads some of what has arrived although nothing is pending.
  void look_around();
  // The link has ended, has no stream, and max_ended others have ended since: nobody will ask for
  // it.
  bool forgotten() const;

  // Something remains to be done, or is expected.
  bool pending() const;
  // Called after drive(). False if the link leaves the ready list.
  bool stays_listed();
  // The events on which drive() may have something to do (descriptor -1 without a socket). A link
  // that dials must also be driven as time passes.
  pollfd poll_for() const;
  // Adds the same for sleeping; while it dials, all sockets that it dials on.
  void add_to(std::vector<pollfd>& polls) const;
  // One to poll for reading beside these; -1: none. Links may have it in common.
  int descriptor() const;
  bool dials() const { return bool(dialer_); }
  // True if drive() is cheaper than polling first, because the link uses an upgrade.
  bool quick() const { return conduits_.uses_upgrade(); }
  // Before and after this process polls. may_sleep is false if there is something to do now that
  // poll would not report. any: the poll found something.
  bool may_sleep();
  void awake(bool any);
  // Reads wake-up bytes once the socket carries no more frames. True if there was anything.
  bool hear() { return conduits_.reads_upgraded() && conduits_.upgrade()->hear(); }
  // What the link's bytes travel over: the name of the conduit, once it serves both directions.
  const char* carrier() const { return conduits_.carrier(); }
  // The link needs the other side to connect.
  bool awaited() const { return !conduits_ && !connects() && pending(); }
  // Everything that was to be sent arrives although this process ends now, or it never will.
  bool abort_sent() const {
    const bool sent = out_.empty() && (!conduits_ || conduits_.way_out().delivered());
    return sent || send_error_ != 0 || !status_.ok();
  }

  // Sends BYE after all queued frames.
  void say_bye();
  // The peer's kernel has acknowledged everything but perhaps the BYE.
  bool flushed();

  // Ends all pending and later operations with this status.
  void fail(const Status& status);
  // This process lacks descriptors or memory to connect. What waits for the connection fails; the
  // link stays, so that the team can tell the peer once there are some.
  void run_short(const Status& lack);

  // For streams.
  struct Demand {
    size_t receives = 0;  // posted, or in progress
    size_t sends = 0;     // not yet in the kernel's hands
    size_t large = 0;     // posted receives of `large` bytes or more
  } demand;
  LinkShared& shared() { return shared_; }
  Outbox& out() { return out_; }
  const std::string& label() const { return label_; }
  const Status& status() const { return status_; }
  ReceiveInProgress* receive_of(const Stream& stream) {
    return receiving_stream_ == &stream ? &receiving_ : nullptr;
  }
  // A partly sent frame can't be completed, so the connection can't be used any more.
  void tear() { torn_ = true; }

 private:
  bool connects() const { return shared_.context.options.self < process_; }
  bool wanted() const {
    return demand.receives > 0 || demand.sends > 0 || (poll_idle_ && status_.ok());
  }
  void list();

  bool dial();
  bool dial_further();
  bool dial_between_hosts();
  bool dials_locally() const;
  bool may_be_within_host(const AddressBlob& peer) const;
  void add_local_candidate(const AddressBlob& peer);
  Status begin_to_dial();
  void take_socket(Socket socket);
  Status unreachable() const;
  Result<PairKey> agree() const;
  Result<Greeting> introduction(const PairKey& key) const;
  void greet();
  bool take_greeting();
  void apply(const Greeting& greeting);
  void begin_frames();
  void negotiate(const Status& outcome);
  void look_for_upgrade();
  void try_upgrade();
  void leave_conduit();
  void end_sending();
  Status open_filter();
  // Once the peer is known, for the connection that is there, or is tried.
  bool filters() const {
    return shared_.context.options.filter && shared_.context.options.filter->filters(same_host_);
  }
  bool proves() const { return shared_.context.options.prover && peer_proves_; }
  void look_for_listener();
  void look_for_prover();
  void look_for_missed();
  void look_for_life();
  void look_for_handshake();

  bool flush();
  void finish_sends(Operation* sent);
  bool sits_out(const Outbox::Flushed& failed);
  void note_send_error(int error);
  bool read();
  void note_end(int error);
  void note_loss(int error);
  bool has_problem(const Conduit& conduit);
  Inbox::Read read_once();
  void parse();
  bool step();
  bool defers(const Frame& frame);
  void take_frame(const Frame& frame);
  Stream* find_stream(const TeamId& team, bool make);
  void begin_receive(Stream* to, const Frame& frame);
  bool deposit();
  void finish_receive();
  void take_abort(const TeamId& team);
  void lost(const std::string& how);

  LinkShared& shared_;
  const ProcessId process_;
  std::string label_, host_name_;
  std::vector<Candidate> candidates_;
  Key peer_key_{};  // said where there are no proofs
  PublicKey peer_public_{};
  bool known_ = false;  // know() has succeeded
  // Whether the peer is on this host. Until they are connected that is what the two say of
  // themselves, and decides how to connect; then, with TcpContext::proves_host, it is proved.
  bool same_host_ = false;
  std::chrono::steady_clock::time_point missed_{};  // zero: never
  bool peer_proves_ = false;
  bool peer_has_proved_ = false, peer_filters_ = false;  // says its greeting

  std::unique_ptr<Dialer> dialer_;
  ConduitStack conduits_;
  int overdue_ = 0;  // looks at its handshake since that should have been done
  std::chrono::steady_clock::time_point shaking_since_{};
  bool poll_idle_ = false;   // reads although nothing is pending
  bool introduced_ = false;  // the greeting is sent, or queued
  bool greeted_ = false;     // the peer's greeting has come
  bool said_bye_ = false;
  bool shut_ = false;  // the socket sends no more
  bool torn_ = false;
  bool listed_ = false;   // in the ready list
  bool blocked_ = false;  // the conduit took less than offered last time
  std::chrono::steady_clock::time_point
      short_since_{};   // the kernel lacks memory to send; zero: no
  int send_error_ = 0;  // errno; the peer's earlier bytes may still be read
  Status status_;
  uint64_t ended_ = 0;  // its number among the links that ended

  Outbox out_;
  UpgradeNegotiation negotiation_;
  Inbox inbox_;
  int deferrals_ = 0;  // of the frame that is next in the inbox
  bool receiving_now_ = false;
  ReceiveInProgress receiving_;
  Stream* receiving_stream_ = nullptr;  // nullptr: its payload is dropped
  std::string text_;                    // payload of a frame of the link's own, or of an abort

  std::unordered_map<TeamId, std::unique_ptr<Stream>, TeamHash> streams_;
  Stream* latest_ = nullptr;                         // the stream used last
  std::unordered_set<TeamId, TeamHash> dead_teams_;  // closed, but messages may still come
  // The latest aborts of teams that have no stream, because it is not open yet or never will be.
  struct EarlyAbort {
    TeamId team;
    std::string cause;
  };
  std::vector<EarlyAbort> early_aborts_;
};

}  // namespace sluice
