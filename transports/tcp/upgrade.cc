// SPDX-License-Identifier: BSD-3-Clause
//
// How a link leaves the conduit that it began on: for its filter once the greetings are exchanged,
// and for an upgrade. The handshake of an upgrade:
//
//   connecting side   OFFER ->           SHIFT ->
//   accepting side            <- ACCEPT            <- SHIFT     or <- DECLINE, and the next offer
//
// The accepting side can receive over the upgrade before it accepts, and the connecting side before
// it shifts. Each side's frames before its SHIFT go over the base, those after it over the upgrade.
#include <algorithm>
#include <span>
#include <utility>

#include "transports/tcp/link.h"

namespace sluice {
namespace {

constexpr uint32_t posts_between_looks = 16;
constexpr std::byte last_offer{128};  // beside the maker's id

}  // namespace

// Called when both sides' greetings are known to come first over this connection.
Status Link::open_filter() {
  if (!filters() || filter_) return {};
  const ConduitEnds ends{shared_.options.self, process_,   shared_.key, peer_key_,
                         connects(),           same_host_, host_name_};
  auto made = shared_.options.filter->make(plain_, ends);
  if (!made.ok()) return made.status().with(label_);
  filter_ = std::move(*made);
  carrier_ = filter_->name();
  return {};
}

// The last frame over the conduit in use has left.
void Link::leave_conduit() {
  if (filter_ && !sends_filtered_) {
    sends_filtered_ = true;
    return;
  }
  sends_upgraded_ = true;
  upgrade_->take_base();
  if (reads_upgraded_) carrier_ = upgrade_->name();
}

bool Link::permits(const UpgradeMaker& maker) const {
  return !filter_ || !maker.exposes(same_host_);
}

bool Link::serves(const UpgradeMaker& maker) const {
  return maker.serves(same_host_) && permits(maker);
}

bool Link::can_upgrade() const {
  return std::ranges::any_of(shared_.options.upgrades,
                             [&](const auto& maker) { return serves(*maker); });
}

// A link that is only sent on is not read, so the peer's offer or answer would never be seen.
void Link::look_for_upgrade() {
  if (!can_upgrade() || ++looks_ % posts_between_looks != 0) return;
  curious_ = true;
  (void)read();
  curious_ = false;
  if (!out_.empty()) flush();
}

// Connecting side, once the peer's answer has proved its identity, and after each offer that came
// to nothing.
void Link::offer_upgrade() {
  const auto& makers = shared_.options.upgrades;
  const auto next = [&] {
    while (next_maker_ < makers.size() && !serves(*makers[next_maker_])) ++next_maker_;
    return next_maker_ < makers.size();
  };
  Status why{Code::unavailable, next_maker_ == 0 ? "no upgrade serves it" : "it declined"};
  while (status_.ok() && next()) {
    UpgradeMaker& maker = *makers[next_maker_++];
    auto made = maker.make(base());
    if (!made.ok()) {
      why = made.status();
      continue;
    }
    std::vector<std::byte> offer{std::byte{maker.id()} | (next() ? std::byte{0} : last_offer)};
    offer.insert(offer.end(), made->offer.begin(), made->offer.end());
    upgrade_ = std::move(made->upgrade);
    return push_text(FrameType::offer, offer);
  }
  if (status_.ok()) settle(why);
}

// The link stays on its base.
void Link::settle(const Status& why) {
  settled_ = true;
  if (!shared_.options.needs_upgrade || same_host_) return;
  flush();  // the DECLINE
  fail(why.with("SLUICE_TRANSPORT does not allow TCP to " + label_));
}

void Link::push_text(FrameType type, std::span<const std::byte> text) {
  Outgoing out{Frame{type, false, static_cast<uint32_t>(text.size())}};
  out.owned = std::make_unique_for_overwrite<std::byte[]>(text.size());
  std::ranges::copy(text, out.owned.get());
  out_.push(std::move(out));
}

void Link::push_shift() {
  Outgoing out{Frame{FrameType::shift}};
  out.last = true;
  out_.push(std::move(out));
}

void Link::take_offer() {
  if (connects() || upgrade_) {
    return fail({Code::internal, label_ + " sent OFFER out of turn"});
  }
  const auto text = std::as_bytes(std::span(text_));
  const std::byte first = text.empty() ? std::byte{0} : text[0];
  const auto is_named = [&](const auto& maker) {
    return std::byte{maker->id()} == (first & ~last_offer) && permits(*maker);
  };
  Status why{Code::unavailable, "it offered nothing that this process has"};
  const auto maker = std::ranges::find_if(shared_.options.upgrades, is_named);
  if (maker != shared_.options.upgrades.end()) {
    auto attached = (*maker)->attach(text.subspan(1), base());
    if (attached.ok()) {
      upgrade_ = std::move(attached->upgrade);
      return push_text(FrameType::accept, attached->offer);
    }
    why = attached.status();
  }
  out_.push({Frame{FrameType::decline}});
  if ((first & last_offer) != std::byte{0}) settle(why);
}

void Link::take_accept() {
  if (!connects() || !upgrade_ || accepted_) {
    return fail({Code::internal, label_ + " sent ACCEPT without an offer"});
  }
  if (upgrade_->accepted(std::as_bytes(std::span(text_))).ok()) {
    accepted_ = true;
    return push_shift();
  }
  upgrade_.reset();
  out_.push({Frame{FrameType::decline}});
  offer_upgrade();
}

// Bytes already read after this frame are doorbell bytes. They can be dropped, because the upgrade
// is read next.
void Link::take_shift() {
  if (!upgrade_ || reads_upgraded_ || (connects() && !accepted_)) {
    return fail({Code::internal, label_ + " sent SHIFT without an accepted offer"});
  }
  reads_upgraded_ = settled_ = true;
  inbox_.clear();
  if (!connects()) push_shift();
  if (sends_upgraded_) carrier_ = upgrade_->name();
}

void Link::take_decline() {
  if (!upgrade_ || accepted_ || quick()) {
    return fail({Code::internal, label_ + " sent DECLINE without an offer"});
  }
  upgrade_.reset();
  if (connects()) offer_upgrade();
}

bool Link::may_sleep() {
  if (wanted() && socket_ && way_in().buffered()) return false;
  if (!upgrade_ || !quick()) return true;
  const bool sends = !out_.empty() && send_error_ == 0;
  return upgrade_->may_sleep(reads_upgraded_ && wanted(), sends_upgraded_ && sends);
}

void Link::awake() {
  if (upgrade_ && quick()) upgrade_->awake();
}

}  // namespace sluice
