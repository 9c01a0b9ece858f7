// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/connection.h"
#include "src/base/system_call.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

namespace sluice {
namespace {

constexpr int max_reads = 16;  // in one turn, so that other links get theirs
// What ETIMEDOUT may mean, or silence while something is sent.
constexpr const char* mtu_hint =
    "; small packets have passed before: if that host is up, packets of full size are lost on the "
    "way, so check that the MTU of all interfaces and switches is the same";
// What comes of a shortage amid a message.
constexpr const char* not_again = "; this connection is given up, and not made again";
// What EFAULT means.
constexpr const char* bad_buffer =
    "a buffer is not as long as the call says, or a page of it is protected";

}  // namespace

Connection::Connection(ConnectionEvents& link, LinkShared& shared, const PeerIdentity& peer,
                       const Connector& connector, UpgradeNegotiation::Side side,
                       FrameReader reader)
    : link_(link),
      shared_(shared),
      peer_(peer),
      connector_(connector),
      negotiation_(shared, conduits_, out_, peer.label, side),
      reader_(std::move(reader)) {}

void Connection::fail(const Status& status) { link_.fail(status); }

// (While the first filter's handshake is under way, the other side may not have met this one.)
Diagnosis::Stage Connection::stage() const {
  using Stage = Diagnosis::Stage;
  if (is_parted()) return Stage::parted;
  if (!conduits_) return Stage::unmet;
  if (turn_ == Turn::first && is_opening()) return Stage::opening;
  if (is_local()) return Stage::local;
  const bool is_last = state_ != State::open || goodbye_ != Goodbye::unsaid || out_.is_torn();
  return is_last ? Stage::last : Stage::open;
}

// While it is open the link may go on without it.
void Connection::end(int error, const std::string& how) {
  link_.noticed(is_break(error) ? Diagnosis::Sign::broke : Diagnosis::Sign::ended,
                {Code::peer_lost, how}, Diagnosis::Limit::running);
}

void Connection::disconnect() {
  state_ = State::parted;
  sending_ = Sending::parted;
  send_error_ = 0;
  if (link_.demand.gets > 0) {
    // What is being read of the peer's memory cannot go on over another connection: it is sent.
    conduits_.memory()->end();
    while (conduits_.memory()->next_broken()) {  // the peer knows
    }
    (void)report_gets();
    if (!link_.status().ok()) return;
  }
  conduits_.part();
}

// That way the peer can't read this side's memory any more, nor be read.
void Connection::end_gets() {
  if (PeerMemory* const memory = conduits_.memory()) memory->end(reader_.frame().number);
  shared_.ready.unfinished |= link_.demand.gets > 0;
}

bool Connection::report_gets() try {
  const bool any = conduits_.memory()->report();
  Stream::tell_broken(*conduits_.memory(), out_);
  return any;
} catch (const std::bad_alloc&) {
  fail(shared_.no_memory);
  return false;
}

bool Connection::read_rest() {
  if (conduits_) return read();
  parse();
  if (!link_.wanted() || conduits_.left() == nullptr) return false;
  const Inbox::Read got = reader_.read(*conduits_.left());
  if (got.result != Conduit::Moved::Result::some) return false;
  parse();
  return true;
}

void Connection::resume(Socket socket, bool within_host, const Greeting& theirs) {
  if (out_.is_torn()) {
    cannot_send();
    return;
  }
  finish_sends(out_.go_on());
  reader_.go_on();
  negotiation_.restart();
  connect(std::move(socket), within_host);
  reset_when_closed(conduits_.socket(), false);
  turn_ = Turn::later;
  open();
  sending_ = Sending::ready;
  theirs_ = theirs;
  shortage_ = {};
  shaking_since_ = {};
  overdue_ = 0;
  watch_ = {};
  doubt_ = {};
  Status status = check_settings(shared_, peer_, theirs);
  if (status.ok()) status = check_terms(shared_, peer_, theirs, conduits_.within_host());
  if (status.ok()) status = add_filter(shared_, peer_, conduits_);
  if (!status.ok()) return fail(status);
  if (shared_.options.self < peer_.process) negotiate(negotiation_.offer());
  if (link_.status().ok() && !out_.empty()) (void)flush();
}

void Connection::close() {
  state_ = State::apart;
  out_.clear();
  reader_.clear();
  conduits_.end();
}

// How the two greet.

void Connection::connect(Socket socket, bool within_host) {
  const bool filters = is_filtered(shared_, within_host);
  conduits_.connect(std::move(socket), within_host, shared_.proves_host(), filters);
}

void Connection::greet(Socket socket, bool within_host, const Greeting& answer) {
  connect(std::move(socket), within_host);
  learn(answer);
}

void Connection::accept(Socket socket, bool within_host, const Greeting& theirs) {
  connect(std::move(socket), within_host);
  state_ = State::asked;
  theirs_ = theirs;
  if (peer_.known) answer();
  const Status same = check_settings(shared_, peer_, theirs);
  if (!same.ok()) return fail(same);
  if (peer_.known) begin();
}

// Without proofs: queues the greeting before everything else.
void Connection::push_greeting() {
  const auto words = make_greeting(shared_, peer_, {}, false);
  if (!words.ok()) return fail(words.status());
  Outgoing greeting{Frame{FrameType::data, false, Greeting::bytes}};
  greeting.bare = true;
  greeting.owned = std::make_unique<std::byte[]>(Greeting::bytes);
  words->encode(greeting.owned.get());
  out_.push_front(std::move(greeting));
}

void Connection::open() {
  state_ = State::open;
  keep_alive(conduits_.socket(), shared_.options.peer_timeout);
  link_.opened();
}

// Accepting side. (With proofs the acceptor has answered.)
void Connection::answer() {
  if (state_ != State::asked) return;
  open();
  if (theirs_.proves || are_proved(shared_, peer_)) return;
  push_greeting();
  if (link_.status().ok()) flush();
}

void Connection::begin() {
  answer();
  if (!link_.status().ok()) return;
  Status status = check_terms(shared_, peer_, theirs_, conduits_.within_host());
  if (status.ok()) status = add_filter(shared_, peer_, conduits_);
  if (!status.ok()) fail(status);
}

// Connecting side, once the answer has come.
void Connection::learn(const Greeting& theirs) {
  open();
  theirs_ = theirs;
  const Status same = check_settings(shared_, peer_, theirs);
  if (!same.ok()) return fail(same);
  begin();
  if (link_.status().ok()) negotiate(negotiation_.offer());
}

bool Connection::is_settled() const {
  const bool shaken =
      conduits_.filter() == nullptr || conduits_.filter()->handshake() == Conduit::Handshake::done;
  return state_ == State::open && negotiation_.is_settled() && !conduits_.lacks_filter() &&
         shaken && !is_local() && goodbye_ == Goodbye::unsaid;
}

// How they change to an upgrade.

// After the negotiation has said whether the link must fail.
void Connection::negotiate(const Status& outcome) {
  if (!outcome.ok()) return fail(outcome);
  if (!negotiation_.refusal().ok()) flush();  // then the link fails
}

// A link that is only sent on is not read, so the peer's offer or answer would never be seen.
void Connection::advance_upgrade() {
  (void)link_.read_idle();
  if (tries_upgrade()) try_upgrade();
  if (!out_.empty()) flush();
}

void Connection::try_upgrade() try {
  negotiate(negotiation_.try_upgrade());
} catch (const std::bad_alloc&) {
  fail(shared_.no_memory_to_connect);
}

// The last frame over the conduit in use has left.
void Connection::leave_conduit() {
  if (!negotiation_.refusal().ok()) return fail(negotiation_.refusal());
  conduits_.send_upgraded();
}

// How bytes move.

bool Connection::drive() {
  bool moved = link_.demand.gets > 0 && report_gets();
  moved |= link_.wanted() && read();
  if (tries_upgrade()) try_upgrade();
  if (!out_.empty() || (conduits_.filter_waits() && !conduits_.sends_upgraded())) moved |= flush();
  if (conduits_.filter_waits() && conduits_.sends_upgraded()) {
    (void)conduits_.filter()->flush();  // a wake-up byte
  }
  // A filter that had to read in order to write may hold more than its handshake.
  if (link_.wanted() && conduits_ && conduits_.way_in().buffered()) shared_.ready.unfinished = true;
  return moved;
}

void Connection::flush_now() {
  if (!conduits_) return;
  if (!out_.empty() && sending_ != Sending::blocked) flush();
  if (conduits_ && negotiation_.must_look()) advance_upgrade();
  // Poll does not report bytes that have been read from the socket.
  if (link_.wanted() &&
      (!reader_.inbox().empty() || (conduits_ && conduits_.way_in().buffered()))) {
    shared_.ready.unfinished = true;
  }
}

pollfd Connection::poll_for() const {
  if (!conduits_ || has_bye_) return {-1, 0, 0};
  const bool sends = !out_.empty() && send_error_ == 0 && !doubt_.lasts();
  int events = conduits_.way_in().interest(link_.wanted(), false) |
               conduits_.way_out().interest(false, sends);
  if (conduits_.filter_waits()) events |= conduits_.filter()->interest(false, true);
  return {conduits_.socket().fd(), static_cast<short>(events), 0};
}

bool Connection::may_sleep() {
  if (link_.wanted() && conduits_ && conduits_.way_in().buffered()) return false;
  if (!conduits_.uses_upgrade()) return true;
  const bool sends = !out_.empty() && send_error_ == 0;
  return conduits_.upgrade()->may_sleep(conduits_.reads_upgraded() && link_.wanted(),
                                        conduits_.sends_upgraded() && sends);
}

void Connection::check_peer() {
  (void)conduits_.hear();
  check_acknowledgement();
  if (link_.status().ok()) check_host();
  if (doubt_.lasts() && link_.status().ok()) flush();
  if (conduits_.filter() != nullptr) check_handshake();
}

bool Connection::flush() {
  if (sending_ == Sending::parted || out_.is_torn()) return cannot_send();
  if (send_error_ != 0) return false;
  if (is_doubtful()) return false;
  const Outbox::Flushed flushed = out_.flush(conduits_.way_out());
  finish_sends(flushed.done);
  if (flushed.result == Outbox::Result::shifted) {
    leave_conduit();
    if (link_.status().ok()) (void)flush();
    return true;
  }
  const bool blocked = flushed.result == Outbox::Result::blocked;
  sending_ = blocked ? Sending::blocked : Sending::ready;
  if (flushed.moved || flushed.result != Outbox::Result::failed) shortage_.end();
  if (flushed.result == Outbox::Result::failed && !sits_out(flushed.error)) {
    note_send_error(flushed.error);
  }
  end_sending();
  return flushed.moved;
}

// What goes over an upgrade is not lost with the socket.
bool Connection::ask_about_doubt() {
  if (state_ != State::open || conduits_.sends_upgraded()) return false;
  return doubt_.forbids(conduits_.socket(), shared_.options.peer_timeout);
}

bool Connection::cannot_send() {
  if (!out_.is_torn()) return false;
  fail({Code::memory, "no memory for the rest of a message to " + peer_.label});
  return true;
}

// The end of the socket must not overtake what another conduit carries.
void Connection::end_sending() {
  if (goodbye_ != Goodbye::said || !conduits_ || !out_.empty()) return;
  if (!conduits_.way_out().delivered()) return;
  goodbye_ = Goodbye::shut;
  shutdown(conduits_.socket().fd(), SHUT_WR);
}

void Connection::finish_sends(Operation* sent) {
  while (sent != nullptr) {
    Operation* const each = std::exchange(sent, sent->next);
    if (!each->note_left()) continue;
    --link_.demand.sends;
    shared_.completions.finish(each);
  }
}

// A write that failed because the kernel lacks memory has moved nothing, and is tried again, as
// long as connecting may take.
bool Connection::sits_out(int error) {
  return is_shortage(error) && !conduits_.sends_upgraded() &&
         shortage_.is_young(shared_.options.connect_timeout);
}

// If the peer is gone, what it sent before may still be read, and explains more than errno. Any
// other error ends the link, because a frame that is cut off can't be continued.
void Connection::note_send_error(int error) {
  if (has_problem(conduits_.way_out())) return;
  if (is_break(error)) {
    send_error_ = error;
  } else if (error == EFAULT) {
    fail({Code::invalid, "the memory of a message to " + peer_.label + " can't be read (" +
                             error_text(error) + "): " + bad_buffer});
  } else if (is_shortage(error)) {
    fail({Code::memory,
          "no memory to send to " + peer_.label + ": " + error_text(error) + not_again});
  } else {
    end(error, error != 0 ? error_text(error) : "it takes no more bytes");
  }
}

// Only large packets are lost if two interfaces on the way have different maximum sizes.
void Connection::note_loss(int error) {
  const bool passed = error == ETIMEDOUT && has_greeted_us();
  end(error, error_text(error) + (passed ? mtu_hint : ""));
}

bool Connection::read() {
  if (has_bye_) return false;
  if (conduits_.reads_upgraded() && reader_.inbox().empty() &&
      !conduits_.upgrade()->has_arrived()) {
    return false;
  }
  // Whether the two agree on a filter shows when the peer is known.
  if (shared_.options.filter && has_greeted_us() && !peer_.known) return false;
  bool moved = false;
  for (int i = 0; i < max_reads; ++i) {
    parse();
    if (!link_.wanted()) return moved;
    if (reader_.is_deferred()) break;
    const Inbox::Read read = reader_.read(conduits_.way_in());
    if (read.result == Conduit::Moved::Result::nothing) return moved;
    if (read.result == Conduit::Moved::Result::some) {
      moved = true;
      if (!read.drained || conduits_.way_in().buffered()) continue;
      parse();
      return true;
    }
    note_end(read.error);
    return true;
  }
  shared_.ready.unfinished = true;
  return moved;
}

// True if the conduit itself says why it failed. Fails the link.
bool Connection::has_problem(const Conduit& conduit) {
  const std::string problem = conduit.problem();
  if (problem.empty()) return false;
  fail({Code::peer_lost, "the connection to " + peer_.label + " failed: " + problem});
  return true;
}

// Nothing more can be read.
void Connection::note_end(int error) {
  if (has_problem(conduits_.way_in())) return;
  if (error == EFAULT) {
    fail({Code::invalid, "the memory for a message from " + peer_.label + " can't be written (" +
                             error_text(error) + "): " + bad_buffer});
  } else if (is_shortage(error)) {
    fail({Code::memory,
          "no memory to receive from " + peer_.label + ": " + error_text(error) + not_again});
  } else if (error != 0) {
    note_loss(error);
  } else {
    end(0, "it closed the connection without a goodbye");
  }
}

// Parses what has been read, as long as an operation needs it.
void Connection::parse() try {
  while (link_.wanted() && has_greeted_us() && step()) {
  }
} catch (const std::bad_alloc&) {  // in the middle of a frame
  fail(shared_.no_memory);
}

// False if there is no whole frame, or none may be taken now.
bool Connection::step() {
  const FrameReader::Step step = reader_.step();
  if (step == FrameReader::Step::returned) receive(reader_.frame().type);
  return step != FrameReader::Step::starved;
}

void Connection::receive(FrameType type) {
  if (type == FrameType::bye) {
    has_bye_ = true;
    return link_.take_bye();
  }
  if (type == FrameType::unread) return end_gets();
  if (type == FrameType::rail) return link_.take_rail(reader_.frame().number);
  if (is_parted()) return;  // another connection negotiates anew
  negotiate(negotiation_.receive(type, reader_.text()));
  // Bytes already read after a SHIFT are wake-up bytes.
  if (type != FrameType::shift) return;
  reader_.inbox().discount(reader_.inbox().size());
  reader_.inbox().clear();
}

void Connection::say_bye() {
  if (!conduits_ || state_ == State::asked || goodbye_ != Goodbye::unsaid) return;
  out_.push({Frame{FrameType::bye}});
  goodbye_ = Goodbye::said;
  flush();
}

// The BYE itself need not have arrived, because no rank waits for it.
bool Connection::flushed() {
  end_sending();
  if (!conduits_ || state_ == State::asked || send_error_ != 0) return true;
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

// Once the peer's part of the filter's handshake has begun to come, the rest must follow. (A peer
// that is busy may begin late.) This process looks twice after the deadline, because it may have
// been busy itself, and reads between two looks.
void Connection::check_handshake() {
  const auto now = std::chrono::steady_clock::now();
  if (conduits_.filter()->handshake() != Conduit::Handshake::under_way) {
    shaking_since_ = {};
  } else if (shaking_since_ == std::chrono::steady_clock::time_point{}) {
    shaking_since_ = now;
    overdue_ = 0;
  } else if (now - shaking_since_ > shared_.options.connect_timeout && ++overdue_ > 1) {
    note_stall({Code::timeout, "the handshake with " + peer_.label +
                                   " came to a halt: " + conduits_.filter()->name()});
  }
}

void Connection::note_stall(const Status& why) {
  link_.noticed(Diagnosis::Sign::stalled, why, Diagnosis::Limit::running);
}

// Until the filter's handshake is done.
bool Connection::is_opening() const {
  return conduits_.filter() != nullptr &&
         conduits_.filter()->handshake() != Conduit::Handshake::done;
}

// The peer's process may be busy for any time, but its kernel acknowledges what was sent.
void Connection::check_acknowledgement() {
  const auto limit = shared_.options.connect_timeout;
  if (!is_opening() || !is_unacknowledged(conduits_.socket(), limit)) return;
  note_stall({Code::timeout,
              "cannot connect to " + peer_.label +
                  ": its host took the connection, but has acknowledged no byte for " +
                  std::to_string(limit.count() / 1000) + " s; does a firewall between drop data?"});
}

// A dead host acknowledges nothing. Where nothing was sent, a firewall may have forgotten the
// connection, and another one is tried.
void Connection::check_host() {
  const auto limit = shared_.options.peer_timeout;
  using Sign = Diagnosis::Sign;
  const Sign sign = watch_.judge(connector_, conduits_.socket(), limit);
  const std::string time = std::to_string(watch_.silence().count() / 1000) + " s";
  const auto broke = [&](const std::string& how) {
    link_.noticed(Sign::broke, {Code::peer_lost, how + time}, Diagnosis::Limit::running);
  };
  if (watch_.silence() > Vigil::Duration(0) && doubt_.lasts()) {
    return broke("its host has not answered for ");
  }
  if (sign == Sign::nothing) return;
  if (sign == Sign::broke) return broke("its host has answered nothing on it for ");
  const size_t receives = link_.demand.receives, sends = link_.demand.sends;
  const bool both = receives > 0 && sends > 0;
  const char* const what =
      both ? "receive from it and to send to it" : (sends > 0 ? "send to it" : "receive from it");
  const std::string how = "its host has not answered for " + time +
                          ", in which this rank waited to " + what + ", nor on another connection" +
                          (sends > 0 ? mtu_hint : "");
  link_.noticed(sign, {Code::peer_lost, how}, Diagnosis::Limit::passed);
}

}  // namespace sluice
