// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "transports/pieces.h"

namespace sluice {
namespace {

// Read ahead around a large payload: enough for headers, and little to copy.
constexpr size_t small_read_ahead = 1024;
constexpr int max_reads = 16;  // in one turn, so that other links get theirs
constexpr size_t max_text = 4096;
constexpr size_t max_early_aborts = 64;
constexpr int max_deferrals = 16;  // of one frame: other calls' operations may finish for ever
// Ended links to remember: a team may include such a process without having used its link yet.
constexpr uint64_t max_ended = 256;
// What ETIMEDOUT may mean.
constexpr const char* mtu_hint =
    "; small packets have passed before: if that host is up, packets of full size are lost on the "
    "way, so check that the MTU of all interfaces and switches is the same";
// What comes of a shortage amid a message.
constexpr const char* not_again = "; this connection is given up, and not made again";
// What EFAULT means.
constexpr const char* bad_buffer =
    "a buffer is not as long as the call says, or a page of it is protected";

}  // namespace

Link::Link(LinkShared& shared, const ProcessId& process)
    : shared_(shared),
      process_(process),
      label_("process " + std::to_string(process.low)),
      negotiation_(shared, conduits_, out_, label_,
                   connects() ? UpgradeNegotiation::Side::connecting
                              : UpgradeNegotiation::Side::accepting) {}

Link::~Link() { explicit_bzero(peer_key_.data(), peer_key_.size()); }

Stream& Link::stream(const TeamId& team) {
  if (latest_ != nullptr && latest_->team() == team) return *latest_;
  auto found = streams_.find(team);
  if (found == streams_.end()) {
    found = streams_.emplace(team, std::make_unique<Stream>(*this, team)).first;
    Stream* const stream = found->second.get();
    const auto early = std::ranges::find(early_aborts_, team, &EarlyAbort::team);
    if (early != early_aborts_.end()) {
      stream->aborted(early->cause);
      early_aborts_.erase(early);
    }
  }
  latest_ = found->second.get();
  return *latest_;
}

void Link::close(Stream& stream) {
  stream.withdraw();
  if (stream.left_open()) dead_teams_.insert(stream.team());
  if (latest_ == &stream) latest_ = nullptr;
  if (receiving_stream_ == &stream) {
    receiving_stream_ = nullptr;
    receiving_.unexpected = nullptr;
  }
  streams_.erase(TeamId(stream.team()));
}

void Link::look() {
  if (conduits_) parse();
}

void Link::flush_now() {
  if (!status_.ok()) return;
  if (!conduits_ && connects() && pending()) dial();
  if (conduits_ && !out_.empty() && (!blocked_ || torn_)) flush();
  if (conduits_ && negotiation_.must_look()) look_for_upgrade();
  // Poll does not report bytes that have been read from the socket.
  if (wanted() && (!inbox_.empty() || (conduits_ && conduits_.way_in().buffered())))
    shared_.ready.unfinished = true;
  list();
}

bool Link::drive() {
  // (Without a dialer there was no memory for one.)
  const bool dials = dialer_ || (known_ && connects() && pending());
  if (!conduits_ && (!dials || !dial())) return false;
  bool moved = wanted() && read();
  if (conduits_.upgrade() != nullptr && !quick()) try_upgrade();
  if (!out_.empty() || (conduits_.filter_waits() && !conduits_.sends_upgraded())) moved |= flush();
  if (conduits_.sends_upgraded() && conduits_.filter_waits())
    (void)conduits_.filter()->flush();  // a wake-up byte
  // A filter that had to read in order to write may hold more than its handshake.
  if (wanted() && conduits_ && conduits_.way_in().buffered()) shared_.ready.unfinished = true;
  return moved;
}

bool Link::pending() const {
  if (!status_.ok()) return false;
  return wanted() || ((!out_.empty() || conduits_.filter_waits()) && send_error_ == 0);
}

pollfd Link::poll_for() const {
  const bool sends = !out_.empty() && send_error_ == 0;
  if (!conduits_) return {-1, 0, 0};
  int events =
      conduits_.way_in().interest(wanted(), false) | conduits_.way_out().interest(false, sends);
  if (conduits_.filter_waits()) events |= conduits_.filter()->interest(false, true);
  return {conduits_.socket().fd(), static_cast<short>(events), 0};
}

void Link::add_to(std::vector<pollfd>& polls) const {
  if (dialer_) {
    dialer_->add_to(polls);
    return;
  }
  polls.push_back(poll_for());
}

int Link::descriptor() const { return quick() ? conduits_.upgrade()->descriptor() : -1; }

void Link::list() {
  if (listed_ || !pending()) return;
  shared_.ready.links.push_back(this);
  listed_ = true;
}

bool Link::stays_listed() {
  listed_ = pending();
  return listed_;
}

bool Link::flush() {
  if (torn_) {
    fail({Code::memory, "no memory for the rest of a message to " + label_});
    return true;
  }
  if (send_error_ != 0) return false;
  if (known_ && filters() && conduits_.filter() == nullptr) {
    // Memory ran out when it was to be made. Nothing goes out in clear instead.
    if (conduits_ && greeted_) fail({Code::memory, "no memory to encrypt for " + label_});
    return false;
  }
  const Outbox::Flushed flushed = out_.flush(conduits_.way_out());
  finish_sends(flushed.done);
  if (flushed.result == Outbox::Result::shifted) {
    leave_conduit();
    if (status_.ok()) (void)flush();
    return true;
  }
  blocked_ = flushed.result == Outbox::Result::blocked;
  if (flushed.result != Outbox::Result::failed) {
    short_since_ = {};
  } else if (!sits_out(flushed)) {
    note_send_error(flushed.error);
  }
  end_sending();
  return flushed.moved;
}

// After the negotiation has said whether the link must fail.
void Link::negotiate(const Status& outcome) {
  if (!outcome.ok()) return fail(outcome);
  if (!negotiation_.refusal().ok()) flush();  // then the link fails
}

// The last frame over the conduit in use has left.
void Link::leave_conduit() {
  if (!negotiation_.refusal().ok()) return fail(negotiation_.refusal());
  conduits_.send_upgraded();
}

// A link that is only sent on is not read, so the peer's offer or answer would never be seen.
void Link::look_for_upgrade() {
  poll_idle_ = true;
  (void)read();
  poll_idle_ = false;
  try_upgrade();
  if (!out_.empty()) flush();
}

void Link::try_upgrade() try {
  if (conduits_.upgrade() != nullptr && !quick()) negotiate(negotiation_.try_upgrade());
} catch (const std::bad_alloc&) {
  fail(shared_.context.no_memory_to_connect);
}

bool Link::may_sleep() {
  if (wanted() && conduits_ && conduits_.way_in().buffered()) return false;
  if (!quick()) return true;
  const bool sends = !out_.empty() && send_error_ == 0;
  return conduits_.upgrade()->may_sleep(conduits_.reads_upgraded() && wanted(),
                                        conduits_.sends_upgraded() && sends);
}

void Link::awake(bool any) {
  if (quick()) conduits_.upgrade()->awake(any);
}

// The end of the socket must not overtake what another conduit carries.
void Link::end_sending() {
  if (!said_bye_ || shut_ || !conduits_ || !out_.empty() || !conduits_.way_out().delivered())
    return;
  shut_ = true;
  shutdown(conduits_.socket().fd(), SHUT_WR);
}

void Link::finish_sends(Operation* sent) {
  while (sent != nullptr) {
    Operation* const each = std::exchange(sent, sent->next);
    --demand.sends;
    shared_.completions.finish(each);
  }
}

// A write that failed because the kernel lacks memory has moved nothing, and is tried again, as
// long as connecting may take. (A filter's can't be repeated.)
bool Link::sits_out(const Outbox::Flushed& failed) {
  if (!is_shortage(failed.error) || conduits_.filter() != nullptr || conduits_.sends_upgraded())
    return false;
  const auto now = std::chrono::steady_clock::now();
  if (failed.moved || short_since_ == decltype(short_since_){}) short_since_ = now;
  return now - short_since_ < shared_.context.options.connect_timeout;
}

// If the peer is gone, what it sent before may still be read, and explains more than errno. Any
// other error ends the link, because a frame that is cut off can't be continued.
void Link::note_send_error(int error) {
  if (has_problem(conduits_.way_out())) return;
  const bool gone = error == EPIPE || error == ECONNRESET || error == ETIMEDOUT;
  if (gone) {
    send_error_ = error;
  } else if (error == EFAULT) {
    fail({Code::invalid, "the memory of a message to " + label_ + " can't be read (" +
                             error_text(error) + "): " + bad_buffer});
  } else if (is_shortage(error)) {
    fail({Code::memory, "no memory to send to " + label_ + ": " + error_text(error) + not_again});
  } else {
    lost(error != 0 ? error_text(error) : "it takes no more bytes");
  }
}

// Only large packets are lost if two interfaces on the way have different maximum sizes.
void Link::note_loss(int error) {
  const bool passed = error == ETIMEDOUT && greeted_;
  lost(error_text(error) + (passed ? mtu_hint : ""));
}

bool Link::read() {
  if (conduits_.reads_upgraded() && inbox_.empty() && !conduits_.upgrade()->has_arrived()) {
    return false;
  }
  bool moved = false;
  // The filter needs the peer's key.
  if (greeted_ && !conduits_.filter() && shared_.context.options.filter && (!known_ || filters())) {
    return moved;
  }
  for (int i = 0; i < max_reads; ++i) {
    parse();
    if (!wanted()) return moved;
    if (deferrals_ > 0) break;
    const Inbox::Read read = read_once();
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
bool Link::has_problem(const Conduit& conduit) {
  const std::string problem = conduit.problem();
  if (problem.empty()) return false;
  fail({Code::peer_lost, "the connection to " + label_ + " failed: " + problem});
  return true;
}

// Nothing more can be read.
void Link::note_end(int error) {
  if (has_problem(conduits_.way_in())) return;
  if (error == EFAULT) {
    fail({Code::invalid, "the memory for a message from " + label_ + " can't be written (" +
                             error_text(error) + "): " + bad_buffer});
  } else if (is_shortage(error)) {
    fail({Code::memory,
          "no memory to receive from " + label_ + ": " + error_text(error) + not_again});
  } else if (error != 0 || send_error_ != 0) {
    note_loss(error != 0 ? error : send_error_);
  } else {
    lost("it closed the connection without a goodbye");
  }
}

Inbox::Read Link::read_once() {
  ConstPieces due;
  Bytes aside;
  if (receiving_now_ && receiving_.receive != nullptr) {
    due = receiving_.receive->pieces;
  } else if (receiving_now_ && receiving_.unexpected != nullptr) {
    aside = {receiving_.unexpected->data.get(), receiving_.unexpected->bytes};
    due = {&aside, 1};
  }
  const bool receives_large = receiving_now_ && receiving_.frame.length >= large;
  size_t ahead = demand.large > 0 || receives_large ? small_read_ahead : Inbox::capacity;
  if (!greeted_) ahead = Greeting::bytes - inbox_.size();  // what follows may be the filter's
  const Inbox::Read read = inbox_.read(conduits_.way_in(), due, receiving_.moved, ahead);
  receiving_.moved += read.straight;
  if (receiving_now_ && receiving_.moved == receiving_.frame.length) finish_receive();
  return read;
}

// Parses what has been read, as long as an operation needs it.
void Link::parse() try {
  while (wanted() && step()) {
  }
} catch (const std::bad_alloc&) {  // in the middle of a frame
  fail(shared_.context.no_memory);
}

bool Link::step() {
  if (receiving_now_) return deposit();
  if (!greeted_) return take_greeting();
  if (inbox_.size() < Frame::bytes) return false;
  Frame frame;
  if (!frame.decode(inbox_.data())) {
    fail({Code::internal, label_ + " sent an invalid frame header"});
    return false;
  }
  if (defers(frame)) return false;
  inbox_.consume(Frame::bytes);
  take_frame(frame);
  return true;
}

// A large message whose receive is not posted would have to be set aside and copied. Who is about
// to hear that another has finished most likely posts it then.
bool Link::defers(const Frame& frame) {
  const bool sooner =
      shared_.completions.finished != shared_.completions.heard && deferrals_ < max_deferrals;
  if (!sooner || frame.type != FrameType::data || frame.length < large || !frame.charged) {
    deferrals_ = 0;
    return false;
  }
  const Stream* const to = find_stream(frame.team, false);
  if (to == nullptr || to->expects(frame.tag)) {
    deferrals_ = 0;
    return false;
  }
  ++deferrals_;
  shared_.ready.unfinished = true;  // poll knows nothing of what is in the inbox
  return true;
}

void Link::take_frame(const Frame& frame) {
  if (frame.type == FrameType::shift) {
    negotiate(negotiation_.take(frame.type, {}));
    // Bytes already read after this frame are wake-up bytes.
    return inbox_.clear();
  }
  if (frame.type == FrameType::bye) {
    return fail({Code::peer_lost, label_ + " finished (MPI_Finalize) while it was still expected"});
  }
  const bool makes_stream = frame.type == FrameType::data || frame.type == FrameType::rts;
  Stream* const to = find_stream(frame.team, makes_stream);
  if (to != nullptr && frame.credit > 0) to->credited(frame.credit);
  switch (frame.type) {
    case FrameType::data:
    case FrameType::abort:
    case FrameType::offer:
    case FrameType::accept:
    case FrameType::decline:
      return begin_receive(to, frame);
    case FrameType::rts:
      if (to != nullptr) to->take_rts(frame);
      return;
    case FrameType::cts:
      if (to != nullptr) to->take_cts(frame.tag);
      return;
    case FrameType::credit:
    case FrameType::bye:
    case FrameType::shift:
      return;
  }
}

// nullptr if the team's stream is closed, or does not exist and is not to be made.
Stream* Link::find_stream(const TeamId& team, bool make) {
  if (latest_ != nullptr && latest_->team() == team) return latest_;
  if (!dead_teams_.empty() && dead_teams_.contains(team)) return nullptr;
  if (make) return &stream(team);
  const auto found = streams_.find(team);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Link::begin_receive(Stream* to, const Frame& frame) {
  ReceiveInProgress receiving{frame};
  if (frame.type != FrameType::data) {
    text_.clear();
  } else if (to != nullptr) {
    receiving = to->begin_receive(frame);
  }
  if (!status_.ok()) return;
  receiving_ = receiving;
  receiving_stream_ = to;
  receiving_now_ = true;
  if (frame.length == 0) finish_receive();
}

// Moves payload from the inbox to its destination. False if there is none.
bool Link::deposit() {
  const size_t bytes = std::min(inbox_.size(), receiving_.frame.length - receiving_.moved);
  if (bytes == 0) return false;
  if (receiving_.receive != nullptr) {
    scatter(receiving_.receive->pieces, receiving_.moved, inbox_.data(), bytes);
  } else if (receiving_.unexpected != nullptr) {
    std::copy_n(inbox_.data(), bytes, receiving_.unexpected->data.get() + receiving_.moved);
  } else if (receiving_.frame.type != FrameType::data && text_.size() < max_text) {
    text_.append(reinterpret_cast<const char*>(inbox_.data()), bytes);
  }
  receiving_.moved += bytes;
  inbox_.consume(bytes);
  if (receiving_.moved == receiving_.frame.length) finish_receive();
  return true;
}

void Link::finish_receive() {
  receiving_now_ = false;
  Stream* const to = std::exchange(receiving_stream_, nullptr);
  if (receiving_.frame.type == FrameType::abort) {
    take_abort(receiving_.frame.team);
  } else if (receiving_.frame.type != FrameType::data) {
    negotiate(negotiation_.take(receiving_.frame.type, text_));
  } else if (to != nullptr) {
    to->end_receive(receiving_);
  }
}

void Link::take_abort(const TeamId& team) {
  if (dead_teams_.contains(team)) return;
  if (Stream* const to = find_stream(team, false)) return to->aborted(text_);
  if (early_aborts_.size() == max_early_aborts) early_aborts_.erase(early_aborts_.begin());
  early_aborts_.push_back({team, text_});
}

void Link::lost(const std::string& how) { fail({Code::peer_lost, label_ + " is gone: " + how}); }

void Link::fail(const Status& status) {
  if (!status_.ok()) return;
  status_ = status;
  ended_ = ++shared_.ready.ended;
  if (!connects() && !conduits_) ++shared_.ready.given_up;
  for (auto& [team, stream] : streams_) stream->lose(status);
  receiving_now_ = false;
  receiving_stream_ = nullptr;
  out_.clear();
  inbox_ = {};
  candidates_ = {};
  dialer_.reset();
  conduits_.close();
}

bool Link::forgotten() const {
  return !status_.ok() && streams_.empty() && !listed_ && shared_.ready.ended - ended_ >= max_ended;
}

}  // namespace sluice
