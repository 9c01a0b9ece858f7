// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/frame_reader.h"

#include <algorithm>
#include <utility>

#include "transports/link/rails.h"
#include "transports/link/stream_table.h"
#include "transports/pieces.h"

namespace sluice {
namespace {

// Read ahead around a large payload: enough for headers, and little to copy.
constexpr size_t small_read_ahead = 1024;
constexpr size_t max_text = 4096;
constexpr int max_deferrals = 16;  // of one frame: other calls' operations may finish for ever

}  // namespace

Inbox::Read FrameReader::read(Conduit& conduit) {
  ConstPieces due;
  Bytes aside;
  if (receives_ && receiving_.receive != nullptr) {
    due = receiving_.receive->pieces;
  } else if (receives_ && receiving_.unexpected != nullptr) {
    aside = {receiving_.unexpected->data.get(), receiving_.unexpected->bytes};
    due = {&aside, 1};
  }
  const bool receives_large = receives_ && receiving_.frame.length >= Stream::large;
  const size_t ahead =
      link_.demand.large > 0 || receives_large ? small_read_ahead : Inbox::capacity;
  const Inbox::Read read = inbox_.read(conduit, due, receiving_.moved, ahead);
  receiving_.moved += read.straight;
  if (receives_ && receiving_.moved == receiving_.frame.length)
    (void)finish_receive();  // of a message
  return read;
}

FrameReader::Step FrameReader::step() {
  has_copied_ = false;
  if (receives_) return deposit();
  if (inbox_.size() < Frame::bytes) return Step::starved;
  Frame frame;
  if (!frame.decode(inbox_.data())) {
    link_.fail_for_sent("an invalid frame header");
    return Step::starved;
  }
  if (defers(frame)) return Step::starved;
  inbox_.consume(Frame::bytes);
  return handle(frame);
}

// A large message whose receive is not posted would have to be set aside and copied. Who is about
// to hear that another has finished most likely posts it then.
bool FrameReader::defers(const Frame& frame) {
  const bool sooner =
      shared_.completions.finished != shared_.completions.heard && deferrals_ < max_deferrals;
  const bool is_message = frame.type == FrameType::data || frame.type == FrameType::spread;
  const size_t bytes = frame.type == FrameType::spread ? frame.number : frame.length;
  if (!sooner || !is_message || bytes < Stream::large || !frame.charged) {
    deferrals_ = 0;
    return false;
  }
  const Stream* const to = streams_.find(frame.team, false);
  if (to == nullptr || to->expects(frame.tag)) {
    deferrals_ = 0;
    return false;
  }
  ++deferrals_;
  shared_.ready.unfinished = true;  // poll knows nothing of what is in the inbox
  return true;
}

FrameReader::Step FrameReader::handle(const Frame& frame) {
  const bool makes_stream = frame.type == FrameType::data || frame.type == FrameType::rts ||
                            frame.type == FrameType::spread || frame.type == FrameType::rget;
  Stream* const to = streams_.find(frame.team, makes_stream);
  if (to != nullptr && frame.credit() > 0) to->credited(frame.credit());
  switch (frame.type) {
    case FrameType::rts:
      if (to != nullptr) (void)to->take_rts(frame);
      return Step::moved;
    case FrameType::cts:
      if (to != nullptr) to->take_cts(frame.tag);
      return Step::moved;
    case FrameType::fin:
      if (to != nullptr) to->take_fin(frame.tag);
      return Step::moved;
    case FrameType::credit:
      return Step::moved;
    default:
      return begin_receive(to, frame);
  }
}

FrameReader::Step FrameReader::begin_receive(Stream* to, const Frame& frame) {
  ReceiveInProgress receiving{frame};
  if (frame.type != FrameType::data) {
    text_.clear();
  } else if (to != nullptr) {
    receiving = to->begin_receive(frame);
  }
  const bool is_plain = frame.type == FrameType::data && frame.length >= least_spread;
  if (is_plain && rails_) rails_->note_plain();
  if (!link_.status().ok()) return Step::starved;
  receiving_ = receiving;
  receiving_.stream = to;
  receives_ = true;
  return frame.length == 0 ? finish_receive() : Step::moved;
}

// Moves payload from the inbox to its destination. Starved if there is none.
FrameReader::Step FrameReader::deposit() {
  const size_t bytes = std::min(inbox_.size(), receiving_.frame.length - receiving_.moved);
  if (bytes == 0) return Step::starved;
  if (receiving_.receive != nullptr) {
    scatter(receiving_.receive->pieces, receiving_.moved, inbox_.data(), bytes);
  } else if (receiving_.unexpected != nullptr) {
    std::copy_n(inbox_.data(), bytes, receiving_.unexpected->data.get() + receiving_.moved);
  } else if (receiving_.frame.type != FrameType::data && text_.size() < max_text) {
    text_.append(reinterpret_cast<const char*>(inbox_.data()), bytes);
  }
  receiving_.moved += bytes;
  inbox_.consume(bytes);
  return receiving_.moved == receiving_.frame.length ? finish_receive() : Step::moved;
}

FrameReader::Step FrameReader::finish_receive() {
  receives_ = false;
  Stream* const to = std::exchange(receiving_.stream, nullptr);
  const FrameType type = receiving_.frame.type;
  if (type == FrameType::spread) return begin_spread(to);
  if (type == FrameType::rget) return begin_get(to);
  if (type != FrameType::data && type != FrameType::abort) {
    return std::exchange(drops_, false) ? Step::moved : Step::returned;
  }
  if (type == FrameType::abort) {
    streams_.take_abort(receiving_.frame.team, text_);
  } else if (to != nullptr) {
    to->end_receive(receiving_);
  }
  return Step::moved;
}

FrameReader::Step FrameReader::begin_get(Stream* to) {
  auto lent = decode_lent(text_, receiving_.frame.number);
  if (!lent) {
    link_.fail_for_sent("an invalid RGET");
    return Step::starved;
  }
  auto message = std::make_unique<const LentMessage>(std::move(*lent));
  has_copied_ = to != nullptr && to->take_rts(receiving_.frame, std::move(message));
  shared_.ready.unfinished |= has_copied_;
  return has_copied_ || !link_.status().ok() ? Step::starved : Step::moved;
}

// What follows comes over rails. That the peer spreads its messages is its own affair.
FrameReader::Step FrameReader::begin_spread(Stream* to) {
  std::vector<Share> parts;
  Frame frame = receiving_.frame;
  if (!rails_ || !decode(text_, frame.number, &parts)) {
    link_.fail_for_sent("an invalid SPREAD");
    return Step::starved;
  }
  SpreadReceive* const spread = rails_->expect(frame.number, parts);
  if (spread == nullptr) return Step::starved;
  frame.type = FrameType::data;
  frame.length = frame.number;
  ReceiveInProgress receiving{frame};
  if (to != nullptr) receiving = to->begin_receive(frame);
  receiving.stream = to;
  if (!link_.status().ok()) return Step::starved;
  spread->at = receiving;
  return Step::moved;
}

void FrameReader::forget(const Stream& stream) {
  if (receiving_.stream != &stream) return;
  receiving_.stream = nullptr;
  receiving_.unexpected = nullptr;
}

void FrameReader::go_on() {
  const bool has_head = !receives_ && !inbox_.empty();
  const auto type = has_head ? static_cast<FrameType>(inbox_.data()[0]) : receiving_.frame.type;
  drops_ = (has_head || receives_) && Frame::is_of_upgrades(type);
}

void FrameReader::clear() {
  inbox_ = {};
  receives_ = false;
  receiving_.stream = nullptr;
}

}  // namespace sluice
