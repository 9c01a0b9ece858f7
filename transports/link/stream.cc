// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/stream.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "transports/link/conduit_stack.h"
#include "transports/link/frame_reader.h"
#include "transports/link/outbox.h"
#include "transports/link/rails.h"
#include "transports/link/stream_table.h"
#include "transports/pieces.h"

namespace sluice {
namespace {

constexpr size_t max_cause = 1000;  // bytes of an abort's text
// Announced messages of a link that no receive awaits: each takes some memory. In one call a rank
// posts at most two segments of each step of its plan, and plans have fewer than two steps a rank.
constexpr size_t most_announced = size_t{1} << 18;

}  // namespace

Stream::Stream(const StreamContext& context, StreamTable& table, const TeamId& team)
    : link_(context.link),
      shared_(context.shared),
      out_(context.out),
      reader_(context.reader),
      rails_(context.rails),
      conduits_(context.conduits),
      table_(table),
      team_(team),
      to_peer_(shared_.options.window),
      from_peer_(shared_.options.window) {}

Stream::~Stream() { drop_arrived(); }

void Stream::drop_arrived() {
  for (UnexpectedMessage* unexpected = arrived_.remove_all(); unexpected != nullptr;) {
    if (unexpected->state == UnexpectedMessage::State::rts_only) --link_.demand.announced;
    delete std::exchange(unexpected, unexpected->next);
  }
}

void Stream::post_send(Operation* operation) {
  operation->status = aborted_.ok() ? link_.status() : aborted_;
  if (operation->bytes > shared_.options.max_message) {
    operation->status = {Code::internal, "a message over max_message"};
  } else if (const auto theirs = call_check_.ours(operation->tag)) {
    end_with_other_call(operation, *theirs, link_.label());
  }
  if (!operation->status.ok()) return shared_.completions.finish(operation);
  ++link_.demand.sends;
  const bool is_long = operation->bytes >= shared_.options.get_least;
  if (is_long && lend(operation)) return;
  if (to_peer_.admit(operation)) {
    queue_message(operation, true);
  } else {
    queue(FrameType::rts, operation->tag);
  }
}

// Has the peer get the message, if it can. False: it is to be sent.
bool Stream::lend(Operation* send) {
  if (!refusals_.allow(send->tag.call) || send->bytes > longest_lent) return false;
  PeerMemory* const memory = conduits_.memory();
  if (memory == nullptr) return false;
  LoanWord* const word = shared_.loans.begin();
  if (word == nullptr) return false;
  try {
    LentMessage lent{0, reinterpret_cast<uintptr_t>(word), 0, word->load(), {}};
    if (!memory->lend(*send, shared_.loans.memory(), &lent)) {
      shared_.loans.end(word);
      return false;
    }
    const auto bytes = static_cast<uint32_t>(send->bytes);
    out_.push({FrameType::rget, false, 0, team_, send->tag, bytes}, encode(lent));
  } catch (const std::bad_alloc&) {
    shared_.loans.end(word);
    return false;
  }
  send->loan = word;
  lent_.push_back(send);
  return true;
}

// The peer gets that send no more; nullptr: it is not lent.
Operation* Stream::end_loan(const Tag& tag) {
  Operation* const send = lent_.remove(tag);
  if (send != nullptr) shared_.loans.end(std::exchange(send->loan, nullptr));
  return send;
}

// Its loan ends before the peer has answered.
void Stream::take_back(Operation* send) {
  shared_.loans.end(std::exchange(send->loan, nullptr));
  if (PeerMemory* const memory = conduits_.memory()) memory->keep(*send);
}

// The path that it takes if it is sent now.
MessagePath Stream::path_of(const Operation& send) {
  const bool is_large = send.bytes >= least_spread;
  return is_large && is_to_spread(send) ? MessagePath::spread : MessagePath::inline_frame;
}

bool Stream::is_to_spread(const Operation& send) try {
  return rails_.want(send.bytes) && rails_->spreads(send);
} catch (const std::bad_alloc&) {
  return false;
}

void Stream::queue_message(Operation* operation, bool charged) {
  const bool spreads = path_of(*operation) == MessagePath::spread;
  const bool is_spread = spreads && rails_->send(operation, team_, charged);
  if (!is_spread) queue_data(operation, charged);
  (is_spread ? shared_.traffic.spread : shared_.traffic.inlined) += operation->bytes;
}

void Stream::queue_data(Operation* operation, bool charged) {
  const Frame frame{FrameType::data, charged,        static_cast<uint32_t>(operation->bytes),
                    team_,           operation->tag, from_peer_.take_credit()};
  out_.push({frame, operation});
}

void Stream::queue(FrameType type, const Tag& tag) {
  const bool credits = type == FrameType::credit;
  out_.push({Frame{type, false, 0, team_, tag, credits ? from_peer_.take_credit() : 0}});
}

void Stream::post_recv(Operation* operation) {
  operation->status = aborted_;
  if (const auto theirs = call_check_.ours(operation->tag)) {
    end_with_other_call(operation, *theirs, link_.label());
  }
  if (!operation->status.ok()) return shared_.completions.finish(operation);
  UnexpectedMessage* const unexpected = arrived_.remove(operation->tag);
  if (unexpected != nullptr) return deliver(unexpected, operation);
  operation->status = link_.status();
  if (!operation->status.ok()) return shared_.completions.finish(operation);
  wait_for(operation);
}

void Stream::wait_for(Operation* receive) {
  receive->parts = 0;
  posted_.insert(receive);
  ++link_.demand.receives;
  if (receive->bytes < large) return;
  ++link_.demand.large;
  if (rails_.want(receive->bytes)) rails_->note_expected(receive->bytes);
}

// Gives what has arrived of an unexpected message to its receive.
void Stream::deliver(UnexpectedMessage* taken, Operation* receive) {
  const std::unique_ptr<UnexpectedMessage> unexpected(taken);
  if (unexpected->state == UnexpectedMessage::State::rts_only) {
    --link_.demand.announced;
    wait_for(receive);
    (void)answer(receive, unexpected->tag, unexpected->bytes, unexpected->lent.get());
    return;
  }
  const bool receives = unexpected->state == UnexpectedMessage::State::receiving;
  SpreadReceive* const spread = receives && rails_ ? rails_->find(*unexpected) : nullptr;
  ReceiveInProgress* const receiving = spread != nullptr ? &spread->at : reader_.receive_of(*this);
  const size_t here = receives ? receiving->moved : unexpected->bytes;
  if (unexpected->charged) from_peer_.take_back(unexpected->bytes);
  if (receives) {
    receiving->unexpected = nullptr;
  } else if (unexpected->charged) {
    free_room(unexpected->bytes);
  }
  if (!fits(*receive, unexpected->tag, unexpected->bytes)) {
    end_with_other_length(receive, unexpected->tag, unexpected->bytes, link_.label());
    return shared_.completions.finish(receive);
  }
  scatter(receive->pieces, 0, unexpected->data.get(), here);
  if (!receives) return shared_.completions.finish(receive);
  receiving->receive = receive;
  if (spread != nullptr) spread->aside = std::move(unexpected->data);
  ++link_.demand.receives;
}

ReceiveInProgress Stream::begin_receive(const Frame& frame) {
  ReceiveInProgress receiving{frame};
  if (call_check_.theirs(frame.tag)) {
    disagree(frame.tag);
    return receiving;
  }
  if (Operation* receive = posted_.remove(frame.tag)) {
    if (receive->bytes >= large) --link_.demand.large;
    if (fits(*receive, frame.tag, frame.length)) {
      receiving.receive = receive;
    } else {
      end_with_other_length(receive, frame.tag, frame.length, link_.label());
      --link_.demand.receives;
      shared_.completions.finish(receive);
    }
  } else if (frame.charged) {
    set_aside(receiving);
  }
  return receiving;  // the payload is dropped if its receive was withdrawn after the CTS
}

void Stream::set_aside(ReceiveInProgress& receiving) {
  const Frame& frame = receiving.frame;
  if (!from_peer_.set_aside(frame.length)) {
    return link_.fail_for_sent("more than its window allows");
  }
  const size_t takes = sizeof(UnexpectedMessage) + frame.length;
  if (unopened > 0 && !table_.charge(*this, takes)) return;
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[frame.length]);
  if (memory == nullptr) {
    return link_.fail({Code::memory, "no memory for what " + link_.label() + " sent ahead"});
  }
  UnexpectedMessage* unexpected = arrived_.find(frame.tag);  // the RTS, if one came
  if (unexpected == nullptr) {
    arrived_.insert(unexpected = new UnexpectedMessage{frame.tag});
  } else if (unexpected->state == UnexpectedMessage::State::rts_only) {
    --link_.demand.announced;
  } else {
    return link_.fail_for_sent("a message twice");
  }
  unexpected->data = std::move(memory);
  unexpected->state = UnexpectedMessage::State::receiving;
  unexpected->bytes = frame.length;
  unexpected->charged = true;
  receiving.unexpected = unexpected;
}

void Stream::end_receive(const ReceiveInProgress& receiving) {
  if (receiving.unexpected != nullptr) {
    receiving.unexpected->state = UnexpectedMessage::State::complete;
    return;
  }
  if (receiving.frame.charged) free_room(receiving.frame.length);
  if (receiving.receive == nullptr) return;
  --link_.demand.receives;
  shared_.completions.finish(receiving.receive);
}

bool Stream::take_rts(const Frame& frame, std::unique_ptr<const LentMessage> lent) {
  if (call_check_.theirs(frame.tag)) {
    disagree(frame.tag);
    return false;
  }
  Operation* const receive = posted_.find(frame.tag);
  const bool repeats =
      receive != nullptr ? receive->parts != 0 : arrived_.find(frame.tag) != nullptr;
  if (repeats) {
    link_.fail_for_sent("RTS twice for a message");
    return false;
  }
  if (receive != nullptr) return answer(receive, frame.tag, frame.number, lent.get());
  if (link_.demand.announced == most_announced) {
    link_.fail_for_sent("RTS for more messages than " + std::to_string(most_announced) +
                        " that no receive awaits");
    return false;
  }
  const size_t takes = sizeof(LentMessage) + most_regions * sizeof(Region);
  if (lent != nullptr && unopened > 0 && !table_.charge(*this, takes)) return false;
  auto unexpected = std::make_unique<UnexpectedMessage>();
  unexpected->tag = frame.tag;
  unexpected->bytes = frame.number;
  unexpected->lent = std::move(lent);
  arrived_.insert(unexpected.release());
  ++link_.demand.announced;
  return false;
}

// The receive of an announced message waits: gets the message, or has it sent. True if it has been
// copied.
bool Stream::answer(Operation* receive, const Tag& theirs, size_t bytes, const LentMessage* lent) {
  receive->parts = 1;
  if (lent != nullptr && !fits(*receive, theirs, bytes)) {
    refuse_lent(receive, theirs, bytes);
    return false;
  }
  const PeerMemory::Get got = lent != nullptr ? get(*lent, receive) : PeerMemory::Get::refused;
  if (got == PeerMemory::Get::refused) {
    queue(FrameType::cts, theirs);
    return false;
  }
  begin_get(receive);
  if (got == PeerMemory::Get::done) end_get(receive, true);
  return got == PeerMemory::Get::done;
}

PeerMemory::Get Stream::get(const LentMessage& lent, Operation* receive) try {
  PeerMemory* const memory = conduits_.memory();
  if (memory == nullptr) return PeerMemory::Get::refused;
  const PeerMemory::Get got = memory->get(lent, receive, this);
  if (got == PeerMemory::Get::refused) tell_broken(*memory, out_);
  return got;
} catch (const std::bad_alloc&) {
  return PeerMemory::Get::refused;
}

void Stream::begin_get(Operation* receive) {
  posted_.remove(receive->tag);
  if (receive->bytes >= large) --link_.demand.large;
  getting_.push_back(receive);
  ++link_.demand.gets;
}

// (The receive is complete when FIN has left: nothing else would move it.)
void Stream::end_get(Operation* receive, bool is_right) {
  if (!is_right) return post_again(receive);
  out_.push({FrameType::fin, false, 0, team_, receive->tag}, {}, false, receive);
  getting_.remove(receive->tag);
  --link_.demand.gets;
  receive->parts = 0;
  --link_.demand.receives;
  ++link_.demand.sends;
}

// It could not be got, and is to be sent.
void Stream::post_again(Operation* receive) {
  queue(FrameType::cts, receive->tag);
  getting_.remove(receive->tag);
  try {
    posted_.insert(receive);
  } catch (const std::bad_alloc&) {
    getting_.push_back(receive);
    throw;
  }
  --link_.demand.gets;
  if (receive->bytes >= large) ++link_.demand.large;
}

// The message is of another length.
void Stream::refuse_lent(Operation* receive, const Tag& theirs, size_t bytes) {
  posted_.remove(theirs);
  --link_.demand.receives;
  if (receive->bytes >= large) --link_.demand.large;
  receive->parts = 0;
  queue(FrameType::fin, theirs);
  end_with_other_length(receive, theirs, bytes, link_.label());
  shared_.completions.finish(receive);
}

void Stream::take_cts(const Tag& tag) {
  if (Operation* const send = end_loan(tag)) {
    refusals_.note_refused();
    return queue_message(send, false);
  }
  Operation* const send = to_peer_.release(tag);
  if (send != nullptr) queue_message(send, false);
}

void Stream::take_fin(const Tag& tag) {
  Operation* const send = end_loan(tag);
  if (send == nullptr) return;
  refusals_.note_got();
  shared_.traffic.got += send->bytes;
  --link_.demand.sends;
  shared_.completions.finish(send);
}

void Stream::credited(uint32_t bytes) {
  to_peer_.credit(bytes);
  while (Operation* const send = to_peer_.admit_next()) queue_message(send, true);
}

void Stream::free_room(size_t message) {
  if (from_peer_.owe(message)) queue(FrameType::credit, {});
}

void Stream::withdraw() {
  const bool receives = take_receives(std::nullopt) != nullptr;
  const bool sends = take_sends(std::nullopt) != nullptr;
  left_open_ |= receives || sends;
}

void Stream::abort(const std::string& cause) {
  left_open_ = true;
  if (!link_.status().ok()) return;
  const auto text = std::as_bytes(std::span(cause));
  out_.push({FrameType::abort, false, 0, team_}, text.first(std::min(text.size(), max_cause)));
}

void Stream::aborted(const std::string& cause) {
  if (!aborted_.ok()) return;
  aborted_ = {Code::aborted, cause};
  left_open_ = true;
  end_pending(aborted_);
}

// Ends all pending operations of a call that the peer says is another.
void Stream::disagree(const Tag& theirs) {
  end_all(theirs.call,
          [&](Operation* operation) { end_with_other_call(operation, theirs, link_.label()); });
}

void Stream::end_pending(const Status& status) {
  end_all(std::nullopt, [&](Operation* operation) { operation->status = status; });
}

void Stream::lose(const Status& status) {
  end_pending(status);
  UnexpectedMessage* lost = arrived_.remove_if([](const UnexpectedMessage& unexpected) {
    return unexpected.state != UnexpectedMessage::State::complete;
  });
  while (lost != nullptr) {
    if (lost->state == UnexpectedMessage::State::rts_only) --link_.demand.announced;
    delete std::exchange(lost, lost->next);
  }
}

template <typename End>
void Stream::end_all(std::optional<uint32_t> call, End end) {
  for (Operation* pending : {take_receives(call), take_sends(call)}) {
    while (pending != nullptr) {
      Operation* const operation = std::exchange(pending, pending->next);
      end(operation);
      shared_.completions.finish(operation);
    }
  }
}

// Adds the receives whose messages are being read.
Operation* Stream::stop_gets(std::optional<uint32_t> call, Operation* taken) {
  Operation* const getting = getting_.remove_all(call);
  for (Operation* each = getting; each != nullptr;) {
    Operation* const receive = std::exchange(each, each->next);
    conduits_.memory()->stop(receive);
    --link_.demand.gets;
    receive->next = std::exchange(taken, receive);
  }
  if (getting != nullptr) tell_broken(*conduits_.memory(), out_);
  return taken;
}

// (Without memory the peer finds out by itself, late.)
void Stream::tell_broken(PeerMemory& memory, Outbox& out) try {
  while (const auto part = memory.next_broken()) {
    out.push({Frame{FrameType::unread, false, 0, {}, {}, *part}});
  }
} catch (const std::bad_alloc&) {
}

Operation* Stream::take_receives(std::optional<uint32_t> call) {
  Operation* taken = posted_.remove_if([&](const Operation& receive) {
    const bool takes = !call || *call == receive.tag.call;
    if (takes && receive.bytes >= large) --link_.demand.large;
    return takes;
  });
  taken = stop_gets(call, taken);
  const auto take_receive = [&](ReceiveInProgress& receiving) {
    if (receiving.receive == nullptr || (call && *call != receiving.receive->tag.call)) return;
    Operation* const receive = std::exchange(receiving.receive, nullptr);
    receive->next = std::exchange(taken, receive);
  };
  if (auto* const receiving = reader_.receive_of(*this)) take_receive(*receiving);
  if (rails_) rails_->visit(*this, [&](SpreadReceive& each) { take_receive(each.at); });
  for (Operation* each = taken; each != nullptr; each = each->next) --link_.demand.receives;
  return taken;
}

Operation* Stream::take_sends(std::optional<uint32_t> call) {
  const Outbox::GivenUp given = out_.withdraw(team_, call);
  to_peer_.credit(given.charge);
  from_peer_.return_credit(given.credit);
  Operation* taken = to_peer_.withdraw(call);
  Operation* const spread = rails_ ? rails_->withdraw(team_, call) : nullptr;
  for (Operation* each : {given.sends, spread, lent_.remove_all(call)}) {
    while (each != nullptr) {
      Operation* const send = std::exchange(each, each->next);
      if (send->loan != nullptr) take_back(send);
      send->next = std::exchange(taken, send);
    }
  }
  for (Operation* each = taken; each != nullptr; each = each->next) --link_.demand.sends;
  return taken;
}

}  // namespace sluice
