// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/upgrade_negotiation.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/log.h"

namespace sluice {
namespace {

using Side = UpgradeNegotiation::Side;
using State = UpgradeNegotiation::State;
using Message = UpgradeNegotiation::Message;
using Action = UpgradeNegotiation::Action;

constexpr uint32_t posts_between_looks = 16;
constexpr const char* in_clear = "RDMA does not encrypt, and SLUICE_TLS demands it";
constexpr size_t max_reasons_shown = 64;  // at most, of one process

// The first byte of a DECLINE is an index here.
constexpr Message declines[] = {Message::decline, Message::no_more_offers, Message::probe_failed,
                                Message::try_another};

struct Row {
  Side side;
  State state;
  Message message;
  State next;
  Action action;
};

constexpr Row rows[] = {
    {Side::connecting, State::offered, Message::accept, State::probing, Action::begin_probe},
    {Side::connecting, State::offered, Message::decline, State::idle, Action::offer_next},
    {Side::connecting, State::offered, Message::no_more_offers, State::idle, Action::offer_next},
    {Side::connecting, State::offered, Message::try_another, State::idle, Action::offer_again},
    {Side::connecting, State::offered, Message::probe_failed, State::offered, Action::ignore},
    {Side::connecting, State::probing, Message::probe_failed, State::idle, Action::withdraw},
    {Side::connecting, State::shifting, Message::probe_failed, State::shifting, Action::give_up},
    {Side::connecting, State::shifting, Message::shift, State::done, Action::take_over},
    {Side::connecting, State::done, Message::probe_failed, State::done, Action::give_up},
    {Side::connecting, State::settled, Message::probe_failed, State::settled, Action::ignore},

    {Side::accepting, State::idle, Message::offer, State::probing, Action::attach},
    {Side::accepting, State::idle, Message::no_more_offers, State::settled, Action::settle},
    {Side::accepting, State::probing, Message::decline, State::idle, Action::drop},
    {Side::accepting, State::probing, Message::try_another, State::idle, Action::drop},
    {Side::accepting, State::probing, Message::no_more_offers, State::settled, Action::settle},
    {Side::accepting, State::probing, Message::shift, State::done, Action::take_over},
    {Side::accepting, State::failed, Message::decline, State::idle, Action::drop},
    {Side::accepting, State::failed, Message::try_another, State::idle, Action::drop},
    {Side::accepting, State::failed, Message::no_more_offers, State::settled, Action::settle},
    {Side::accepting, State::failed, Message::shift, State::failed, Action::give_up},
};

Message message_of(FrameType type, const std::string& text) {
  if (type == FrameType::offer) return Message::offer;
  if (type == FrameType::accept) return Message::accept;
  if (type == FrameType::shift) return Message::shift;
  const size_t kind = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
  return kind < std::size(declines) ? declines[kind] : Message::decline;
}

}  // namespace

UpgradeNegotiation::Step UpgradeNegotiation::step(Side side, State state, Message message) {
  const auto row = std::ranges::find_if(rows, [&](const Row& each) {
    return each.side == side && each.state == state && each.message == message;
  });
  return row == std::end(rows) ? Step{state, Action::reject} : Step{row->next, row->action};
}

Status UpgradeNegotiation::receive(FrameType type, const std::string& text) {
  const Message message = message_of(type, text);
  const auto [next, action] = step(side_, state_, message);
  state_ = next;
  return act(action, message, text);
}

Status UpgradeNegotiation::act(Action action, Message message, const std::string& text) {
  const bool declines = action == Action::offer_again || action == Action::offer_next ||
                        action == Action::drop || action == Action::settle;
  if (declines) conduits_.set_upgrade(nullptr);
  if ((declines && text.size() > 1) || action == Action::withdraw) reason_ = {text.substr(1), true};
  switch (action) {
    case Action::reject:
      return reject(message);
    case Action::attach:
      return attach(text);
    case Action::begin_probe:
      return begin_probe(text);
    case Action::offer_next:
      leave_maker();
      return offer();
    case Action::offer_again:
      return offer();
    case Action::withdraw:
      return withdraw();
    case Action::settle:
      return settle();
    case Action::take_over:
      take_over();
      return {};
    case Action::give_up:
      return refuse(text);
    case Action::drop:
    case Action::ignore:
      return {};
  }
  return {};
}

Status UpgradeNegotiation::reject(Message message) const {
  std::string_view what = "DECLINE without an offer";
  if (message == Message::offer) what = "OFFER out of turn";
  if (message == Message::accept) what = "ACCEPT without an offer";
  if (message == Message::probe_failed) what = "DECLINE out of turn";
  if (message == Message::shift) what = "SHIFT without an accepted offer";
  return {Code::internal, label_ + " sent " + std::string(what)};
}

Status UpgradeNegotiation::refuse(const std::string& text) const {
  const std::string why = connects() ? "; on its side: " + text.substr(1) : ": " + reason_.text;
  return {Code::peer_lost, "the connection to " + label_ + " failed" + why};
}

bool UpgradeNegotiation::can_upgrade() const {
  return std::ranges::any_of(shared_.options.upgrades, [&](const auto& maker) {
    return maker->serves(conduits_.within_host());
  });
}

bool UpgradeNegotiation::must_look() {
  const bool decided = state_ == State::done || state_ == State::settled;
  return !decided && can_upgrade() && ++looks_ % posts_between_looks == 0;
}

void UpgradeNegotiation::restart() {
  state_ = State::idle;
  next_maker_ = next_choice_ = 0;
  reason_ = {};
  refusal_ = {};
}

Status UpgradeNegotiation::offer() {
  const auto& makers = shared_.options.upgrades;
  while (next_maker_ < makers.size()) {
    UpgradeMaker& maker = *makers[next_maker_];
    if (!maker.serves(conduits_.within_host()) ||
        next_choice_ >= (permits(maker) ? maker.choices() : 1)) {
      leave_maker();
      continue;
    }
    const size_t choice = next_choice_++;
    auto made =
        permits(maker) ? maker.make(conduits_.base(), choice) : Status(Code::unavailable, in_clear);
    if (made.ok()) {
      std::vector<std::byte> offer{std::byte{maker.id()}};
      offer.insert(offer.end(), made->offer.begin(), made->offer.end());
      conduits_.set_upgrade(std::move(made->upgrade));
      out_.push({FrameType::offer}, offer);
      state_ = State::offered;
      return {};
    }
    reason_ = {made.status().message()};
  }
  return end_offers();
}

// If no maker serves the two, the accepting side knows that without being told.
Status UpgradeNegotiation::end_offers() {
  state_ = State::settled;
  (void)settle();
  if (!can_upgrade()) return refusal_;
  push_decline(Message::no_more_offers);
  return {};
}

// The link stays on its base. An error if it may not.
Status UpgradeNegotiation::settle() {
  const std::string& lack = reason_.text;
  const std::string reason = (reason_.is_peers ? "on its side: " : "on this side: ") +
                             (lack.empty() ? "there is nothing but TCP" : lack);
  if (shared_.options.needs_upgrade && !conduits_.within_host()) {
    refusal_ = {Code::unavailable,
                "SLUICE_TRANSPORT=verbs does not allow TCP to " + label_ + "; " + reason};
    return refusal_;
  }
  if (lack.empty()) return {};
  const bool shown = shared_.reasons.size() < max_reasons_shown && !shared_.reasons.contains(lack);
  if (shown) shared_.reasons.insert(lack);
  log(shown ? Level::info : Level::debug, "the connection to %s stays on %s; %s", label_.c_str(),
      conduits_.carrier(), reason.c_str());
  return {};
}

// It tells this side's reason.
void UpgradeNegotiation::push_decline(Message kind) {
  const std::string_view reason = reason_.is_peers ? std::string_view() : reason_.text;
  const auto index = std::ranges::find(declines, kind) - std::begin(declines);
  std::vector<std::byte> text{static_cast<std::byte>(index)};
  const auto words = std::as_bytes(std::span(reason));
  text.insert(text.end(), words.begin(), words.end());
  out_.push({FrameType::decline}, text, kind == Message::no_more_offers && !refusal_.ok());
}

void UpgradeNegotiation::push_shift() { out_.push({FrameType::shift}, {}, true); }

Status UpgradeNegotiation::attach(const std::string& offer) {
  const auto text = std::as_bytes(std::span(offer));
  const auto is_named = [&](const auto& maker) {
    return !text.empty() && std::byte{maker->id()} == text[0] && permits(*maker);
  };
  const auto maker = std::ranges::find_if(shared_.options.upgrades, is_named);
  Status why{Code::unavailable, "nothing serves what was offered"};
  if (maker != shared_.options.upgrades.end()) {
    auto attached = (*maker)->attach(text.subspan(1), conduits_.base());
    if (attached.ok()) {
      conduits_.set_upgrade(std::move(attached->upgrade));
      out_.push({FrameType::accept}, attached->offer);
      return {};
    }
    why = attached.status();
  }
  state_ = State::idle;
  reason_ = {why.message()};
  push_decline(why.code() == Code::mismatch ? Message::try_another : Message::decline);
  return {};
}

Status UpgradeNegotiation::begin_probe(const std::string& answer) {
  const Status accepted = conduits_.upgrade()->accepted(std::as_bytes(std::span(answer)));
  if (accepted.ok()) return try_upgrade();
  reason_ = {accepted.message()};
  return withdraw();
}

// What was accepted does not work.
Status UpgradeNegotiation::withdraw() {
  conduits_.set_upgrade(nullptr);
  push_decline(Message::decline);
  return offer();
}

Status UpgradeNegotiation::try_upgrade() {
  if (state_ != State::probing) return {};
  const Result<bool> tried = conduits_.upgrade()->tried();
  if (tried.ok()) {
    if (*tried && connects()) {
      push_shift();
      state_ = State::shifting;
    }
    return {};
  }
  reason_ = {tried.status().message()};
  if (connects()) return withdraw();
  state_ = State::failed;
  push_decline(Message::probe_failed);
  return {};
}

void UpgradeNegotiation::take_over() {
  conduits_.read_upgraded();
  if (!connects()) push_shift();
}

}  // namespace sluice
