// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/stream.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

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
  if (to_peer_.admit(operation)) {
    queue_message(operation, true);
  } else {
    queue(FrameType::rts, operation->tag);
  }
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
  if (!spreads || !rails_->send(operation, team_, charged)) queue_data(operation, charged);
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
    queue(FrameType::cts, receive->tag);
    wait_for(receive);
    receive->parts = 1;
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

void Stream::take_rts(const Frame& frame) {
  if (call_check_.theirs(frame.tag)) return disagree(frame.tag);
  Operation* const receive = posted_.find(frame.tag);
  const bool repeats =
      receive != nullptr ? receive->parts != 0 : arrived_.find(frame.tag) != nullptr;
  if (repeats) return link_.fail_for_sent("RTS twice for a message");
  if (receive != nullptr) {
    receive->parts = 1;
    return queue(FrameType::cts, frame.tag);
  }
  if (link_.demand.announced == most_announced) {
    return link_.fail_for_sent("RTS for more messages than " + std::to_string(most_announced) +
                               " that no receive awaits");
  }
  arrived_.insert(new UnexpectedMessage{frame.tag});
  ++link_.demand.announced;
}

void Stream::take_cts(const Tag& tag) {
  Operation* const send = to_peer_.release(tag);
  if (send != nullptr) queue_message(send, false);
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

Operation* Stream::take_receives(std::optional<uint32_t> call) {
  Operation* taken = posted_.remove_if([&](const Operation& receive) {
    const bool takes = !call || *call == receive.tag.call;
    if (takes && receive.bytes >= large) --link_.demand.large;
    return takes;
  });
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
  for (Operation* each : {given.sends, rails_ ? rails_->withdraw(team_, call) : nullptr}) {
    while (each != nullptr) {
      Operation* const send = std::exchange(each, each->next);
      send->next = std::exchange(taken, send);
    }
  }
  for (Operation* each = taken; each != nullptr; each = each->next) --link_.demand.sends;
  return taken;
}

}  // namespace sluice
