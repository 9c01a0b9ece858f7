// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/link.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "src/base/system_call.h"
#include "transports/tcp/local_socket.h"

namespace sluice {
namespace {

// Ended links to remember: a team may include such a process without having used its link yet.
constexpr uint64_t max_ended = 256;
// Before a peer that was not reached is tried again.
constexpr std::chrono::milliseconds between_dials{100};
constexpr std::chrono::seconds between_looks_around{2};  // at most, of a rank that waits
constexpr int most_deadlines = 4;  // for a peer that cannot be reached, whose host is known to live
constexpr int most_looks = 1000;   // for what has come, and a device reports a moment later

}  // namespace

Link::Link(LinkShared& shared, const ProcessId& process)
    : shared_(shared),
      peer_(process),
      meeting_(Meeting::side_of(shared.options.self, process)),
      connector_(shared, peer_, meeting_.asks() ? FirstWords::greeting : FirstWords::invitation),
      connection_(*this, shared, peer_,
                  meeting_.asks() ? UpgradeNegotiation::Side::connecting
                                  : UpgradeNegotiation::Side::accepting),
      streams_(*this) {}

Status Link::know(const Peer& peer) try {
  peer_.label = peer.label;
  peer_.host = peer.host;
  if (peer_.known) return {};
  const auto blob = AddressBlob::decode(peer.address);
  if (!blob.ok()) return blob.status().with(peer.label);
  connector_.learn(*blob);
  peer_.key = blob->key;
  said_key_ = blob->key;
  peer_.public_key = blob->public_key;
  peer_.proves = blob->proves;
  peer_.known = true;
  if (shared_.options.filter && !are_proved(shared_, peer_)) {
    fail({Code::mismatch, peer_.label + " cannot encrypt, this process wants to"});
  }
  if (connection_) connection_.begin();  // the peer connected first
  return {};
} catch (const std::bad_alloc&) {
  if (peer_.known) fail(shared_.no_memory_to_connect);
  return shared_.no_memory_to_connect;
}

void Link::close(Stream& stream) {
  stream.withdraw();
  connection_.reader().forget(stream);
  if (rails_) rails_->forget(stream);
  streams_.close(stream);
}

void Link::parse_received() {
  if (connection_ || connection_.is_parted()) connection_.parse();
}

void Link::flush_now() {
  if (!connection_ && pending()) seek();
  if (rails_) watch_writes();
  connection_.flush_now();
  if (rails_ && connection_) rails_->flush_now();
  list();
}

bool Link::drive() {
  if (connection_) {
    if (rails_) rails_->watch(false);
    bool moved = connection_.drive();
    if (!rails_ || !status_.ok()) return moved;
    moved |= rails_->drive();
    if (!connection_.out().empty()) connection_.flush_now();  // what the rails' messages free
    return moved;
  }
  // (After a shortage nothing else begins again.)
  if (peer_.known && pending()) need();
  return dials() && dial() && connection_.drive();
}

bool Link::pending() const {
  return status_.ok() &&
         (wanted() || connection_.has_to_send() || (rails_ && rails_->has_to_send()));
}

pollfd Link::poll_for() const { return connection_.poll_for(); }

void Link::add_to(std::vector<pollfd>& polls) const {
  if (connector_.dials()) return connector_.add_to(polls);
  polls.push_back(poll_for());
  if (rails_) rails_->add_to(polls);
}

void Link::list() {
  if (listed_ || !(pending() || dials())) return;
  shared_.ready.links.push_back(this);
  listed_ = true;
}

bool Link::stays_listed() {
  if (!pending() && !is_looked_for()) {
    act_on(Meeting::Event::idle);
    (void)resumption_.enter(Resumption::Event::unneeded);
    connection_.rest();
    if (rails_) rails_->rest();
  }
  listed_ = pending() || dials();
  return listed_;
}

bool Link::read_idle() {
  poll_idle_ = true;
  bool moved = connection_.read();
  if (rails_ && status_.ok()) moved |= rails_->read();
  poll_idle_ = false;
  return moved;
}

// How they come together.

// What the meeting asks for that brings no connection with it.
void Link::act_on(Meeting::Event event) {
  switch (meeting_.enter(event)) {
    case Meeting::Action::wait:
      connector_.stop();
      since_.waits = std::chrono::steady_clock::now();
      break;
    case Meeting::Action::stop:
      connector_.stop();
      break;
    case Meeting::Action::fail:
      fail(connector_.failure());
      break;
    default:  // to dial is to call dial()
      break;
  }
}

// Something is pending, and there is no connection. If one broke, neither side can wait for the
// other, which may not know it, or may have ended.
void Link::need() {
  if (!is_parted()) {
    if (meeting_.state() == Meeting::State::apart) since_.needed = Clock::now();
    return act_on(Meeting::Event::needed);
  }
  if (resumption_.enter(Resumption::Event::needed) == Resumption::Action::seek) {
    search_.begin(Clock::now());
    connector_.forget_invitations();
    unreached_.clear();
  }
  if (!search_.may_dial(Clock::now()) || awaits_writes()) return;
  if (!connector_.dials()) connector_.resume(connection_.counts(), resumption_.number());
  act_on(Meeting::Event::urged);
}

bool Link::is_looked_for() const {
  return resumption_.seeks() && Clock::now() - since_.looked_around < between_looks_around;
}

void Link::seek() {
  need();
  if (dials()) dial();
}

void Link::urge() {
  if (connection_ || !peer_.known || !connector_.has_address()) return;
  act_on(Meeting::Event::urged);
  list();
}

// True once connected.
bool Link::dial() try {
  switch (connector_.advance()) {
    case Dialer::State::dialing:
      return false;
    case Dialer::State::failed:
      end_in_failure();
      return false;
    case Dialer::State::connected:
      break;
  }
  take_dialed();
  return bool(connection_) && status_.ok();
} catch (const std::bad_alloc&) {
  fall_short(shared_.no_memory_to_connect);
  return false;
}

void Link::take_dialed() {
  Connector::Connected made = connector_.take_connected();
  if (meeting_.answer_to(Meeting::Event::connected) == Meeting::Action::invite) {
    connector_.note_invited(peer_text(made.socket.fd()));
    shared_.await_greeting(std::move(made.socket), made.words);
    since_.waits = Clock::now();
    return act_on(Meeting::Event::connected);
  }
  act_on(Meeting::Event::connected);
  if (is_parted()) return resume(std::move(made.socket), *made.answer);
  connector_.note_met(made.socket);
  const bool within_host = is_within_host(made.socket);
  since_.met = Clock::now();
  connection_.greet(std::move(made.socket), within_host, *made.answer);
}

// Dialing has failed.
void Link::end_in_failure() {
  if (connector_.ran_short()) return fall_short(connector_.failure());
  if (is_parted()) return miss();
  act_on(is_pardoned() ? Meeting::Event::short_of : Meeting::Event::unreached);
}

// That the answering side's connections do not pass says nothing of a peer that has an invitation,
// or is on this host, as far as the two know: it may be late. On another host that is known to live
// it may be late, too, behind a firewall, but then it is not waited for without end.
bool Link::is_pardoned() const {
  if (meeting_.asks()) return false;
  if (connector_.has_invited() || (!connector_.leads_away() && is_next_door())) return true;
  const auto limit = most_deadlines * shared_.options.connect_timeout;
  return shared_.reaches(peer_.host) && Clock::now() - since_.needed < limit;
}

// Two virtual machines that were resumed from one snapshot only have other names.
bool Link::is_next_door() const {
  return connector_.may_be_within_host() && peer_.host == shared_.options.host;
}

// The answering side need not connect.
void Link::fall_short(const Status& lack) {
  if (is_parted()) search_.pause(Clock::now(), between_dials);
  meeting_.asks() ? run_short(lack) : act_on(Meeting::Event::short_of);
}

void Link::accept(Socket socket, const Greeting& greeting) try {
  if (greeting.rail != 0) return accept_rail(std::move(socket), greeting);
  if (greeting.resumes && !greeting.invites) {
    resume(std::move(socket), greeting);
    return list();
  }
  const auto brought = greeting.invites ? Meeting::Event::invited : Meeting::Event::greeted;
  const Meeting::Action action = meeting_.enter(brought);
  if (action == Meeting::Action::adopt) {
    if (is_parted()) connector_.resume(connection_.counts(), resumption_.number());
    connector_.adopt(std::move(socket));
  } else if (action == Meeting::Action::accept) {
    connector_.stop();
    connector_.forget_invitations();
    since_.met = Clock::now();
    connector_.note_met(socket);
    const bool within_host = is_within_host(socket);
    connection_.accept(std::move(socket), within_host, greeting);
  }
  list();
} catch (const std::bad_alloc&) {
  fail(shared_.no_memory_to_connect);
}

void Link::uninvited(Acceptor::Reply reply, const std::string& address) {
  if (reply == Acceptor::Reply::refused) {
    const std::string how = "it has given up its connection to this process";
    return fail({Code::peer_lost, "cannot connect to " + peer_.label + ": " + how});
  }
  if (reply == Acceptor::Reply::none) {
    connector_.note_closed(address);
  } else {
    connector_.note_dropped(address);
  }
  const bool judges = meeting_.state() == Meeting::State::invites && !connector_.has_invited() &&
                      !shared_.reaches(peer_.host);
  if (reply == Acceptor::Reply::unacknowledged && judges && !is_parted()) {
    return fail({Code::timeout, connector_.lead() +
                                    "its host takes connections, but acknowledges no byte; does a "
                                    "firewall between drop data, or is net.core.somaxconn of that "
                                    "host less than the number of ranks?"});
  }
  connector_.try_another();
  if (is_parted()) {
    search_.pause(Clock::now(), shared_.options.dial_after);
    if (reply != Acceptor::Reply::dropped) search_.take_back();
  }
  act_on(Meeting::Event::uninvited);
}

bool Link::is_within_host(const Socket& socket) const {
  return shared_.proves_host() ? is_local(socket) : connector_.may_be_within_host();
}

// A connection that is half made goes.
void Link::run_short(const Status& lack) {
  if (connection_) return fail(lack);
  act_on(Meeting::Event::short_of);
  streams_.end_pending(lack);
}

// How another connection takes the place of one that broke.

void Link::broke(const std::string& how) {
  if (connection_.is_shaking_first()) {
    return fail({Code::peer_lost, "the connection to " + peer_.label + " broke (" + how +
                                      ") while the two agreed on encryption"});
  }
  if (!connection_.can_resume() || !connector_.has_address()) return lost(how);
  broken_by_ = how;
  since_.broke = Clock::now();
  if (resumption_.enter(Resumption::Event::broke) != Resumption::Action::part) return;
  (void)meeting_.enter(Meeting::Event::broke);
  connection_.disconnect();
}

// The peer was not to be had now, or never will be.
void Link::miss() {
  const Status why = connector_.failure();
  const bool refused = connector_.is_refused();
  if ((refused || why.code() == Code::peer_lost) && hears_last()) {
    (void)resumption_.enter(Resumption::Event::absent);
    return lost(broken_by_ + "; since then " +
                (refused ? "it has given up its connection to this process"
                         : "nobody answers as it did: " + why.message()));
  }
  (void)resumption_.enter(Resumption::Event::unreached);
  unreached_ = why.message();
  search_.pause(Clock::now(), between_dials);
  act_on(Meeting::Event::short_of);
}

Search::Sign Link::sign_of_life() const {
  const auto proof_due = Acceptor::deadlines_to_prove * shared_.options.connect_timeout;
  const bool welcomed = since_.welcomed != Clock::time_point{};
  if (welcomed && Clock::now() - since_.welcomed < proof_due) return Search::Sign::proves;
  const bool invited = meeting_.state() == Meeting::State::invites &&
                       connector_.has_invited_peer() &&
                       Clock::now() - since_.waits >= Search::time_to_hold;
  const bool held = invited || connector_.is_held(Search::time_to_hold);
  return held ? Search::Sign::held : Search::Sign::none;
}

// An address that has never answered as the peer has a second to.
void Link::look_after_search() {
  const auto limit = shared_.options.peer_timeout;
  if (!resumption_.seeks()) return;
  const bool invites = meeting_.state() == Meeting::State::invites;
  const bool others = !connector_.has_invited_peer() && connector_.may_invite_elsewhere();
  if (invites && others && Clock::now() - since_.waits >= Search::time_to_hold) {
    connector_.try_another();
    act_on(Meeting::Event::overdue);
  }
  if (!search_.is_over(Clock::now(), sign_of_life(), limit)) return;
  (void)resumption_.enter(Resumption::Event::late);
  lost(broken_by_ + "; since then its host has not answered for " +
       std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s" +
       (unreached_.empty() ? "" : " (" + unreached_ + ")"));
}

// What came before the connection broke, as far as windows allow. due: how much the peer has sent.
void Link::read_rest(uint64_t due) {
  hear();  // nothing else looks under an upgrade while nothing is pending
  const auto lacks = [&] { return is_parted() && connection_.counts().received < due; };
  int looks = 0;
  poll_idle_ = true;
  do {
    shared_.completions.heard = shared_.completions.finished;  // nothing is deferred
  } while (connection_.read_rest() || (lacks() && ++looks < most_looks));
  poll_idle_ = false;
}

// The peer has ended. False if more of what it said before may come.
bool Link::hears_last() {
  const bool is_last = connection_.end_rest();
  read_rest();
  return is_last;
}

// What was written to an upgrade is on its way. Before it has come, the peer's counts tell nothing.
bool Link::awaits_writes() {
  return connection_.output() == Upgrade::Output::on_its_way &&
         Clock::now() - since_.broke < shared_.options.connect_timeout;
}

// Of what an upgrade carried, the peer may read some yet. Without proofs a stranger may have
// recorded the key: counts that differ end no connection, but wait until it has ended.
Acceptor::Response Link::prepare(const Greeting& asked) {
  using Kind = Acceptor::Response::Kind;
  missed_.when = {};
  since_.greeted = Clock::now();
  if (!asked.resumes) return {};
  const bool reads_later = connection_.output() != Upgrade::Output::lost;
  read_rest(asked.counts.sent);
  if (!status_.ok()) return {Kind::refuse};
  if (!connection_.may_resume() || !resumption_.takes(meeting_.side(), asked.search)) {
    return {Kind::close};
  }
  const ByteCounts counts = connection_.counts();
  const auto welcome = [&] {
    if (awaits_writes()) return Acceptor::Response{Kind::later};
    if (!asked.invites) since_.welcomed = Clock::now();
    return Acceptor::Response{Kind::welcome, counts};
  };
  if (!connection_) return welcome();
  const bool same = asked.counts.sent == counts.received &&
                    (asked.counts.received == counts.sent ||
                     (reads_later && asked.counts.received < counts.sent));
  if (asked.counts.sent > counts.received || !(same || asked.proves)) return {Kind::later};
  broke("it has connected again");
  return welcome();
}

void Link::resume(Socket socket, const Greeting& theirs) {
  read_rest(theirs.counts.sent);
  if (!may_resume()) return;
  if (!meeting_.asks() && !resumption_.takes(meeting_.side(), theirs.search)) return;
  if (!is_whole(theirs.counts)) return;
  if (connection_) broke("it has connected again");
  if (!meeting_.asks()) act_on(Meeting::Event::greeted);
  connector_.stop();
  connector_.forget_invitations();
  connector_.note_met(socket);
  since_.welcomed = {};
  const bool within_host = is_within_host(socket);
  (void)resumption_.enter(Resumption::Event::resumed);
  resumption_.bring(theirs.search);
  connection_.resume(std::move(socket), within_host, theirs);
}

// Whether each side has what the other has sent. Else the link fails. (What it had not read when it
// greeted, and this side has sent over an upgrade that keeps it, the peer reads and judges.)
bool Link::is_whole(const ByteCounts& theirs) {
  const ByteCounts ours = connection_.counts();
  const bool keeps = connection_.output() == Upgrade::Output::kept;
  const bool has_come = ours.sent == theirs.received || (keeps && theirs.received < ours.sent);
  if (has_come && theirs.sent == ours.received) return true;
  (void)resumption_.enter(Resumption::Event::differed);
  const auto missing = [](uint64_t sent, uint64_t received) {
    return std::to_string(sent - std::min(sent, received)) + " bytes ";
  };
  fail({Code::peer_lost, "the connection to " + peer_.label + " broke (" + broken_by_ + "), and " +
                             missing(ours.sent, theirs.received) + "on the way to it and " +
                             missing(theirs.sent, ours.received) + "from it were lost"});
  return false;
}

// Rails.

// For their trial: what has arrived before more is written.
void Link::watch_writes() {
  const bool writes = connection_.has_to_send() || rails_->has_to_send();
  if (writes && connection_) rails_->watch(true);
}

Rails* Link::make_rails() {
  if (!rails_) rails_ = std::make_unique<Rails>(*this, shared_, peer_, connector_);
  rails_->want();
  return rails_.get();
}

Acceptor::Greeter::Rails Link::takes_rails() const {
  using Answer = Acceptor::Greeter::Rails;
  if (shared_.options.streams < 2 || meeting_.asks()) return Answer::none;
  if (!status_.ok()) return Answer::past;
  if (connection_ && connection_.uses_upgrade()) return Answer::none;
  return connection_ && connection_.is_settled() ? Answer::some : Answer::later;
}

// (For lack of memory there is no rail.)
void Link::accept_rail(Socket socket, const Greeting& greeting) try {
  if (takes_rails() != Acceptor::Greeter::Rails::some) return;
  make_rails()->accept(std::move(socket), greeting);
} catch (const std::bad_alloc&) {
}

const char* Link::carrier() const {
  constexpr const char* tcp[] = {"tcp*1",  "tcp*2",  "tcp*3",  "tcp*4",  "tcp*5",  "tcp*6",
                                 "tcp*7",  "tcp*8",  "tcp*9",  "tcp*10", "tcp*11", "tcp*12",
                                 "tcp*13", "tcp*14", "tcp*15", "tcp*16"};
  constexpr const char* tls[] = {"tls*1",  "tls*2",  "tls*3",  "tls*4",  "tls*5",  "tls*6",
                                 "tls*7",  "tls*8",  "tls*9",  "tls*10", "tls*11", "tls*12",
                                 "tls*13", "tls*14", "tls*15", "tls*16"};
  const size_t open = rails_ ? rails_->in_use() : 0;
  if (open == 0 || open > std::size(tcp)) return connection_.carrier();
  return connection_.has_filter() ? tls[open - 1] : tcp[open - 1];
}

// How they end.

void Link::take_bye() {
  if (!rails_ || !rails_->take_bye()) finished();
}

void Link::take_rail(uint32_t number) {
  if (rails_ && rails_->confirm(number)) return;
  fail({Code::internal, peer_.label + " sent RAIL out of turn"});
}

void Link::finished() {
  fail({Code::peer_lost, peer_.label + " finished (MPI_Finalize) while it was still expected"});
}

void Link::look_after() {
  if (rails_) rails_->look_after();
  if (connection_) return connection_.look_after();
  if (is_parted()) return look_after_search();
  if (!depends()) return;
  look_for_missed();
  // If a process dies before it connects, no connection closes. On this host its death shows
  // because its port is free again.
  if (peer_.known && connector_.is_deserted()) lost("it ended before it connected");
  look_for_prover();
  look_for_overdue();
  look_for_spurning();
}

// What has taken an invitation may be another machine, if it says nothing for a second.
void Link::look_for_overdue() {
  const auto time = std::min(shared_.options.dial_after, shared_.options.connect_timeout / 3);
  const bool waits =
      meeting_.state() == Meeting::State::waits && connector_.has_address() && !is_next_door();
  const bool invites = meeting_.state() == Meeting::State::invites &&
                       connector_.may_invite_elsewhere() && !is_next_door();
  if (!(waits || invites) || Clock::now() - since_.waits < time) return;
  if (invites) connector_.try_another();
  act_on(Meeting::Event::overdue);
}

// A peer that closes all invitations, and says nothing, may be up, and its answers lost. (One that
// has greeted may keep another connection.)
void Link::look_for_spurning() {
  if (is_parted() || !connector_.is_spurned()) return;
  const auto time = Acceptor::deadlines_to_prove * shared_.options.connect_timeout;
  if (Clock::now() - since_.greeted < time) return;
  fail({Code::timeout, connector_.lead() +
                           "it has closed invitations to connect, and answers none; are packets "
                           "from it lost?"});
}

// If it was the peer itself, it does not come again. (Who only replayed its greeting does not keep
// the peer from coming.)
void Link::look_for_missed() {
  const auto limit = shared_.options.connect_timeout;
  if (missed_.when == Clock::time_point{} || Clock::now() - missed_.when < limit) return;
  lost("its connection ended before it had proved itself" +
       (missed_.error == 0 ? "" : ": " + error_text(missed_.error)));
}

// The peer can't come if this process can prove nothing any more. It may be no better off, and
// can't say so then.
void Link::look_for_prover() {
  if (!status_.ok() || !peer_.known || !are_proved(shared_, peer_)) return;
  const Status state = shared_.options.prover->state();
  if (!state.ok()) fail(state.with(peer_.label));
}

// What remains after this loop is small or deferred; the next call reads it.
void Link::look_for_end() {
  (void)connection_.let_go(false);
  if (!connection_ || wanted() || !connection_.has_end()) return;
  hear();
  while (connection_ && read_idle()) {
  }
}

// (Whether the peer of a connection that broke lives shows when it is looked for.)
void Link::look_around() {
  if (is_parted() && status_.ok()) {
    since_.looked_around = Clock::now();
    seek();
    return list();
  }
  if (!connection_ || wanted()) return;
  hear();
  (void)read_idle();
}

void Link::lost(const std::string& how) {
  fail({Code::peer_lost, peer_.label + " is gone: " + how});
}

void Link::fail(const Status& status) {
  if (!status_.ok()) return;
  status_ = status;
  (void)resumption_.enter(Resumption::Event::ended);
  ended_ = ++shared_.ready.ended;
  (void)meeting_.enter(Meeting::Event::ended);
  streams_.lose(status);
  connector_.stop();
  connection_.close();
  if (rails_) rails_->close();
}

bool Link::forgotten() const {
  return !status_.ok() && streams_.empty() && !listed_ && shared_.ready.ended - ended_ >= max_ended;
}

}  // namespace sluice
