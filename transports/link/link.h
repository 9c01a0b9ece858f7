// SPDX-License-Identifier: BSD-3-Clause
//
// What two processes have to do with each other: the connection between them, perhaps with rails
// beside it (rails.h), and the streams of the teams that share it.
//
// The process with the lower id asks for the connection when it first needs it; the other waits a
// second for that, and then dials, too (transports/tcp/meeting.h). While nothing is pending on a
// link, it is not read, and incoming bytes stay in the socket. There are two exceptions. When a
// link is made, and after sleeps, the driver checks whether peers have ended (check_end):
// otherwise ended processes would hold descriptors. A rank that waits long in an arena checks
// whether the peer has aborted a team (read_unasked).
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/link/connection.h"
#include "transports/link/diagnosis.h"
#include "transports/link/link_shared.h"
#include "transports/link/link_state.h"
#include "transports/link/rails.h"
#include "transports/link/resumption.h"
#include "transports/link/search.h"
#include "transports/link/stream_table.h"
#include "transports/tcp/acceptor.h"
#include "transports/tcp/connector.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/meeting.h"
#include "transports/transport.h"

namespace sluice {

class Link final : private ConnectionEvents {
 public:
  using Clock = std::chrono::steady_clock;

  Link(LinkShared& shared, const ProcessId& process);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // The team's stream. Tells the link the peer's address and name; only the first address counts.
  // May throw std::bad_alloc.
  Result<Stream*> open(const TeamId& team, const Peer& peer);
  void close(Stream& stream);

  // After a receive was posted: parses what has been read already.
  void parse_received();
  // After anything was posted: goes on connecting, and sends what can be sent.
  void flush_now();

  // What is known of the peer, if it has greeted now, or invited. Its address may not be known yet.
  Acceptor::Greeter greeter(Meeting::Event brought) const;
  // It is connected, or was: what came before it ended may be an abort.
  bool has_met() const { return connection_.has_greeted_us() || !status_.ok(); }
  // The peer has greeted, or invited, with a proof: what it is told. If it resumes, drops the
  // connection that it says broke. May throw std::bad_alloc.
  Acceptor::Response prepare(const Greeting& asked);
  // Called when the other side has greeted or invited over this connection.
  void accept(Socket socket, const Greeting& greeting);
  // Called when the connection with this side's invitation has ended.
  void uninvited(Acceptor::Reply reply, const std::string& address);
  // Called when somebody greeted as the peer, was answered, and left without the last proof. It is
  // taken for the peer's end if none comes again within the connect deadline. error: errno if the
  // connection broke.
  void note_missed(int error) {
    missed_ = {Clock::now(), error};
    since_.welcomed = {};
  }

  // Moves what can be moved. True if anything moved.
  bool drive();
  // Called from time to time while something is pending: checks whether the peer is still there.
  void check_peer();
  // The same while nothing is pending. If the peer has ended, reads what it sent before, as far as
  // windows allow, and closes the connection. Teams that use the link later get the reason.
  void check_end();
  // The link has ended, has no stream, and max_ended others have ended since: nobody will ask for
  // it.
  bool forgotten() const;
  // Reads some of what has arrived although nothing is pending. If the connection broke, makes
  // another: so a rank that waits for the peer by other means hears of its end. Returns why the
  // link has failed, if it has.
  Status read_unasked();

  // Whether this process has a connection to that host; if so, the host lives.
  bool reaches(const std::string& host) const {
    return connection_ && !host.empty() && peer_.host == host;
  }
  // Called after drive(). False if the link leaves the ready list.
  bool stays_listed();
  // The events on which drive() may have something to do (descriptor -1 without a socket). None:
  // drive() costs less than to poll first, because the link uses an upgrade, reads one that
  // is left of a connection that broke, polls rails itself, or dials, so that it must be driven as
  // time passes.
  std::optional<pollfd> poll_first() const;
  // Adds what to poll for while this process sleeps; while it dials, all sockets that it dials on.
  // beside: gets a descriptor to poll for reading beside these, which links may have in common.
  void add_to(std::vector<pollfd>& polls, std::vector<int>& beside) const;
  // Before this process sleeps. False if there is something to do now that poll would not report.
  bool may_sleep() { return connection_.may_sleep() && (!rails_ || rails_->may_sleep()); }
  // What the poll in which a thread slept has found.
  struct Polled {
    bool any;    // something
    bool rings;  // something on a link's socket
    bool last;   // no other thread sleeps
  };
  // Called after it. True if the link has read wake-up bytes.
  bool awake(const Polled& polled) {
    const bool heard = polled.rings && connection_.conduits().hear();
    Upgrade* const upgrade = connection_.conduits().upgrade();
    if (polled.last && connection_.conduits().uses_upgrade()) upgrade->awake(polled.any);
    return heard;
  }
  // What the link's bytes travel over: the name of the conduit, once it serves both directions.
  const char* carrier() const;
  // It needs a connection, or its answering side expects that the peer makes rails.
  bool awaits_peer() const { return awaits_connection() || (rails_ && rails_->awaits()); }
  // Everything that was to be sent arrives although this process ends now, or it never will.
  bool abort_sent() const {
    return (connection_.all_sent() && (!rails_ || !rails_->has_to_send())) || !status_.ok();
  }

  // Sends BYE after all queued frames.
  void say_bye() { connection_.say_bye(); }
  // After that: moves what can be moved. True once the peer's kernel has acknowledged everything
  // but perhaps the BYE, or the peer has ended or said BYE, and awaits nothing.
  bool finish();
  // Closes the socket over which the peer was told that this link has failed, whether it knows or
  // not. False if there is none.
  bool let_go() { return connection_.conduits().let_go(true); }

  void fail(const Status& status) override;
  // This process lacks descriptors or memory to take connections. Operations that wait for the peer
  // to connect fail. The link stays, so that the team can send ABORT when there are some again.
  void run_short(const Status& lack) {
    if (depends()) fail_to_connect(lack);
  }

 private:
  using Stage = Diagnosis::Stage;
  using Sign = Diagnosis::Sign;
  using Bytes = Diagnosis::Bytes;
  using Limit = Diagnosis::Limit;
  using Remedy = Diagnosis::Remedy;

  void opened() override { (void)resumption_.enter(Resumption::Event::opened); }
  void noticed(Sign sign, const Status& how, Limit limit) override {
    (void)react(sign, how, Bytes::none, limit);
  }
  bool read_idle() override;
  void take_bye() override;
  void take_rail(uint32_t number) override;

  Status know(const Peer& peer);
  void list();
  // Something remains to be done, or is expected.
  bool pending() const;
  bool dials() const { return meeting_.state() == Meeting::State::dials; }
  bool awaits_connection() const { return !connection_ && (pending() || dials()); }
  // It needs the other side to make it.
  bool depends() const { return awaits_connection() && !meeting_.asks(); }
  void fail_to_connect(const Status& lack);
  // Its connection broke, and another may take its place.
  bool is_parted() const { return connection_.is_parted(); }
  // Of frames over the connection.
  ByteCounts counts() {
    return {connection_.out().sent(), connection_.reader().inbox().received()};
  }
  // The same, or it is open, as far as this side knows: the peer may know that it broke.
  bool may_resume() const {
    const Stage at = stage();
    return at == Stage::open || at == Stage::parted;
  }
  // Whether a greeting for a rail may be answered.
  Acceptor::Greeter::Rails takes_rails() const;
  Stage stage() const;
  // That was noticed of the peer. Drops the connection, or gives the link up, if that is what the
  // table says; the caller does the rest. how: the details; its code counts only where they are the
  // whole error.
  Remedy react(Sign sign, const Status& how, Bytes bytes = Bytes::none,
               Limit limit = Limit::running);
  void part(const std::string& how);
  void act_on(Meeting::Event event);
  void need();
  void seek();
  bool is_looked_for() const;
  void accept_rail(Socket socket, const Greeting& greeting);
  void watch_writes();
  bool dial();
  void take_dialed();
  void end_in_failure();
  void fall_short(const Status& lack);
  void check_overdue();
  void check_spurning();
  void check_desertion();
  void check_search();
  Search::Sign sign_of_life() const;
  void resume(Socket socket, const Greeting& theirs);
  Status missing(const ByteCounts& theirs);
  void read_rest(uint64_t due = 0);
  Bytes read_last();
  bool awaits_writes();
  bool is_within_host(const Socket& socket) const;
  bool is_next_door() const;
  Limit limit_to_reach() const;
  void check_missed();
  void check_prover();

  LinkShared& shared_;
  PeerIdentity peer_;
  std::optional<Key> said_key_;  // once known: what answers without proofs say
  Meeting meeting_;
  struct {
    Clock::time_point needed{}, waits{}, met{}, greeted{}, welcomed{}, looked_around{}, broke{};
  } since_;  // zero: it never was; welcomed: nor is a last proof awaited
  Connector connector_;
  Connection connection_;
  LazyRails rails_;
  StreamTable streams_;
  struct {
    Clock::time_point when{};  // zero: never
    int error = 0;
  } missed_;
  bool listed_ = false;  // in the ready list
  Resumption resumption_;
  std::string broken_by_;  // why the connection ended
  std::string unreached_;  // why it could not be made again so far
  Search search_;          // for another
  uint64_t ended_ = 0;     // its number among the links that ended
};

}  // namespace sluice
