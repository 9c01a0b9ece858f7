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

}  // namespace

Link::Link(LinkShared& shared, const ProcessId& process)
    : ConnectionEvents(peer_.label),
      shared_(shared),
      peer_(process),
      meeting_(Meeting::side_of(shared.options.self, process)),
      connector_(shared, peer_, meeting_.asks() ? FirstWords::greeting : FirstWords::invitation),
      connection_(*this, shared, peer_, connector_,
                  meeting_.asks() ? UpgradeNegotiation::Side::connecting
                                  : UpgradeNegotiation::Side::accepting,
                  FrameReader(*this, shared, streams_, rails_)),
      rails_(*this, connection_, shared, peer_, connector_),
      streams_({*this, shared, connection_.out(), connection_.reader(), rails_,
                connection_.conduits()}) {}

Result<Stream*> Link::open(const TeamId& team, const Peer& peer) {
  Status known_now = know(peer);
  if (!known_now.ok()) return known_now;
  return &streams_.open(team);
}

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
  const bool moved = is_parted() && connection_.read_rest();
  // (After a shortage nothing else begins again.)
  if (peer_.known && pending()) need();
  return (dials() && dial() && connection_.drive()) || moved;
}

bool Link::pending() const {
  return status_.ok() &&
         (wanted() || connection_.has_to_send() || (rails_ && rails_->has_to_send()));
}

std::optional<pollfd> Link::poll_first() const {
  const ConduitStack& conduits = connection_.conduits();
  const bool has_upgrade = conduits.uses_upgrade() || conduits.left() != nullptr;
  if (dials() || has_upgrade || (rails_ && rails_->polls())) return std::nullopt;
  return connection_.poll_for();
}

void Link::add_to(std::vector<pollfd>& polls, std::vector<int>& beside) const {
  const ConduitStack& conduits = connection_.conduits();
  const int shared = conduits.uses_upgrade() ? conduits.upgrade()->descriptor() : -1;
  if (shared >= 0 && std::ranges::count(beside, shared) == 0) beside.push_back(shared);
  if (connector_.dials()) return connector_.add_to(polls);
  polls.push_back(connection_.poll_for());
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
  demand.poll_idle = true;
  bool moved = connection_.read();
  if (rails_ && status_.ok()) moved |= rails_->read();
  demand.poll_idle = false;
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
    connector_.invitations().forget();
    unreached_.clear();
  }
  const auto pause = search_.may_dial(Clock::now()) ? Limit::passed : Limit::running;
  if (react(Sign::nothing, {}, awaits_writes() ? Bytes::coming : Bytes::none, pause) ==
      Remedy::wait) {
    return;
  }
  if (!connector_.dials()) connector_.resume(counts(), resumption_.number());
  act_on(Meeting::Event::urged);
}

bool Link::is_looked_for() const {
  return resumption_.seeks() && Clock::now() - since_.looked_around < between_looks_around;
}

void Link::seek() {
  need();
  if (dials()) dial();
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
    connector_.invitations().note_sent(peer_text(made.socket.fd()));
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
  const Status why = connector_.failure();
  const bool refused = connector_.is_refused();
  const Sign sign = refused                         ? Sign::refused
                    : why.code() == Code::peer_lost ? Sign::absent
                                                    : Sign::silent;
  const Bytes bytes = sign == Sign::silent ? Bytes::none : read_last();
  const Limit limit = is_parted() ? Limit::running : limit_to_reach();
  if (react(sign, refused ? Status() : why, bytes, limit) != Remedy::wait) return;
  unreached_ = why.message();
  search_.pause(Clock::now(), between_dials);
  act_on(Meeting::Event::short_of);
}

// That the answering side's connections do not pass says nothing of a peer that has an invitation,
// or is on this host, as far as the two know: it may be late. On another host that is known to live
// it may be late, too, behind a firewall, but then it is not waited for without end.
Diagnosis::Limit Link::limit_to_reach() const {
  if (meeting_.asks()) return Limit::passed;  // the dialer has waited
  if (connector_.invitations().is_one_open() || (!connector_.leads_away() && is_next_door())) {
    return Limit::running;
  }
  const auto limit = most_deadlines * shared_.options.connect_timeout;
  const bool lives = shared_.reaches(peer_.host) && Clock::now() - since_.needed < limit;
  return lives ? Limit::running : Limit::passed;
}

// Two virtual machines that were resumed from one snapshot only have other names.
bool Link::is_next_door() const {
  return connector_.may_be_within_host() && peer_.host == shared_.options.host;
}

// The answering side need not connect.
void Link::fall_short(const Status& lack) {
  if (is_parted()) search_.pause(Clock::now(), between_dials);
  meeting_.asks() ? fail_to_connect(lack) : act_on(Meeting::Event::short_of);
}

Acceptor::Greeter Link::greeter(Meeting::Event brought) const {
  Acceptor::Greeter from = Admission::greeter_of(meeting_.answer_to(brought));
  if (!peer_.known) return from;
  from.known = from.in_team = true;
  if (peer_.proves) from.key = peer_.public_key;
  from.said_key = said_key_;
  from.parted = is_parted();
  from.resumes = may_resume();
  from.rails = takes_rails();
  from.met = since_.met;
  return from;
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
    if (is_parted()) connector_.resume(counts(), resumption_.number());
    connector_.adopt(std::move(socket));
  } else if (action == Meeting::Action::accept) {
    connector_.stop();
    connector_.invitations().forget();
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
  if (reply == Acceptor::Reply::none) {
    connector_.invitations().note_closed(address);
  } else {
    connector_.invitations().note_dropped(address);
  }
  if (reply == Acceptor::Reply::refused) (void)react(Sign::refused, {}, read_last());
  if (reply == Acceptor::Reply::unacknowledged && meeting_.state() == Meeting::State::invites) {
    (void)react(Sign::silent,
                {Code::timeout, connector_.lead() +
                                    "its host takes connections, but acknowledges no byte; does a "
                                    "firewall between drop data, or is net.core.somaxconn of that "
                                    "host less than the number of ranks?"},
                Bytes::none, is_parted() ? Limit::running : limit_to_reach());
  }
  if (!status_.ok()) return;
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
void Link::fail_to_connect(const Status& lack) {
  if (connection_) return fail(lack);
  act_on(Meeting::Event::short_of);
  streams_.end_pending(lack);
}

// Rails.

// For their probe: what has arrived before more is written.
void Link::watch_writes() {
  const bool writes = connection_.has_to_send() || rails_->has_to_send();
  if (writes && connection_) rails_->watch(true);
}

Acceptor::Greeter::Rails Link::takes_rails() const {
  using Answer = Acceptor::Greeter::Rails;
  if (shared_.options.streams < 2 || meeting_.asks()) return Answer::none;
  if (!status_.ok()) return Answer::past;
  if (connection_ && connection_.conduits().uses_upgrade()) return Answer::none;
  return connection_ && connection_.is_settled() ? Answer::some : Answer::later;
}

// (For lack of memory there is no rail.)
void Link::accept_rail(Socket socket, const Greeting& greeting) try {
  if (takes_rails() != Acceptor::Greeter::Rails::some) return;
  rails_.make().accept(std::move(socket), greeting);
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
  if (open == 0 || open > std::size(tcp)) return connection_.conduits().carrier();
  return connection_.conduits().filter() != nullptr ? tls[open - 1] : tcp[open - 1];
}

// How they end.

void Link::take_bye() {
  if (!rails_ || !rails_->take_bye()) fail_for_bye();
}

void Link::take_rail(uint32_t number) {
  if (rails_ && rails_->confirm(number)) return;
  fail_for_sent("RAIL out of turn");
}

void Link::check_peer() {
  if (rails_) rails_->check_rails();
  if (connection_) return connection_.check_peer();
  if (is_parted()) {
    check_prover();
    check_desertion();
    return check_search();
  }
  if (!depends()) return;
  check_missed();
  // If a process dies before it connects, no connection closes. On this host its death shows
  // because its port is free again.
  if (peer_.known && connector_.is_deserted()) (void)react(Sign::deserted, {});
  check_prover();
  check_overdue();
  check_spurning();
}

// What has taken an invitation may be another machine, if it says nothing for a second.
void Link::check_overdue() {
  const auto time = std::min(shared_.options.dial_after, shared_.options.connect_timeout / 3);
  const bool waits =
      meeting_.state() == Meeting::State::waits && connector_.has_address() && !is_next_door();
  const bool invites = meeting_.state() == Meeting::State::invites &&
                       connector_.may_invite_elsewhere() && !is_next_door();
  if (!waits && !invites) return;
  const Limit limit = Clock::now() - since_.waits < time ? Limit::running : Limit::passed;
  if (react(Sign::nothing, {}, Bytes::none, limit) != Remedy::invite) return;
  if (invites) connector_.try_another();
  act_on(Meeting::Event::overdue);
}

// A peer that closes all invitations, and says nothing, may be up, and its answers lost. (One that
// has greeted may keep another connection.)
void Link::check_spurning() {
  if (!connector_.invitations().are_spurned(shared_.options.connect_timeout)) return;
  const auto time = Acceptor::deadlines_to_prove * shared_.options.connect_timeout;
  const Limit limit = Clock::now() - since_.greeted < time ? Limit::running : Limit::passed;
  (void)react(Sign::spurned,
              {Code::timeout, connector_.lead() +
                                  "it has closed invitations to connect, and answers none; are "
                                  "packets from it lost?"},
              Bytes::none, limit);
}

// If it was the peer itself, it does not come again. (Who only replayed its greeting does not keep
// the peer from coming.)
void Link::check_missed() {
  if (missed_.when == Clock::time_point{}) return;
  const bool may_come = Clock::now() - missed_.when < shared_.options.connect_timeout;
  const std::string how = missed_.error == 0 ? "" : error_text(missed_.error);
  (void)react(Sign::unproved, {Code::peer_lost, how}, Bytes::none,
              may_come ? Limit::running : Limit::passed);
}

// The peer can't come if this process can prove nothing any more. It may be no better off, and
// can't say so then.
void Link::check_prover() {
  if (!status_.ok() || !peer_.known || !are_proved(shared_, peer_)) return;
  const Status state = shared_.options.prover->state();
  if (!state.ok()) fail(state.with(peer_.label));
}

// What remains after this loop is small or deferred; the next call reads it.
void Link::check_end() {
  (void)connection_.conduits().let_go(false);
  if (!connection_ || wanted() || !has_ended(connection_.conduits().socket())) return;
  (void)connection_.conduits().hear();
  while (connection_ && read_idle()) {
  }
}

bool Link::forgotten() const {
  return !status_.ok() && streams_.empty() && !listed_ && shared_.ready.ended - ended_ >= max_ended;
}

bool Link::finish() {
  (void)connection_.conduits().hear();  // notes dead peers, which take no more bytes
  (void)drive();
  check_end();  // a peer that has said BYE awaits nothing
  return connection_.has_bye() || (connection_.flushed() && (!rails_ || rails_->flushed()));
}

// (Whether the peer of a connection that broke lives shows when it is looked for.)
Status Link::read_unasked() {
  if (is_parted() && status_.ok()) {
    since_.looked_around = Clock::now();
    seek();
    list();
  } else if (connection_ && !wanted()) {
    (void)connection_.conduits().hear();
    (void)read_idle();
  }
  flush_now();
  return status_;
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

}  // namespace sluice
