// SPDX-License-Identifier: BSD-3-Clause
//
// How a link leaves the conduit that it began on: for its filter once the greetings are exchanged,
// and for an upgrade. The handshake of an upgrade:
//
//   connecting side   OFFER ->            (trial) ->             SHIFT ->
//   accepting side            <- ACCEPT              <- (trial)            <- SHIFT
//
//   or <- DECLINE in place of ACCEPT, and the next offer: of the same maker, or of the next
//
// If no offer is left, the connecting side says so by a last DECLINE.
// The accepting side can receive over the upgrade before it accepts, and the connecting side before
// its trial, which crosses the upgrade itself. Only the connecting side ends an accepted offer: by
// its SHIFT, or by a DECLINE if a trial failed; the accepting side tells it of its own trial. So
// both decide alike. Each side's frames before its SHIFT go over the base, those after it over the
// upgrade.
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/log.h"
#include "transports/tcp/link.h"

namespace sluice {
namespace {

constexpr uint32_t posts_between_looks = 16;
constexpr const char* in_clear = "RDMA does not encrypt, and SLUICE_TLS demands it";
// In a DECLINE.
constexpr std::byte declined{0}, no_more_offers{1}, trial_failed{2}, try_another{3};
constexpr size_t max_reasons_shown = 64;  // at most, of one process

}  // namespace

// Called when both sides' greetings are known to come first over this connection.
Status Link::open_filter() {
  if (!filters() || filter_) return {};
  const auto key = agree();
  if (!key.ok()) return key.status();
  const ConduitEnds ends{shared_.options.self, process_, *key, connects(), host_name_};
  auto made = shared_.options.filter->make(plain_, ends);
  if (!made.ok()) return made.status().with(label_);
  filter_ = std::move(*made);
  carrier_ = filter_->name();
  return {};
}

// The last frame over the conduit in use has left.
void Link::leave_conduit() {
  if (!refused_.ok()) return fail(refused_);
  sends_upgraded_ = true;
  upgrade_->take_base();
  if (reads_upgraded_) carrier_ = upgrade_->name();
}

bool Link::permits(const UpgradeMaker& maker) const { return !filter_ || !maker.exposes(); }

bool Link::can_upgrade() const {
  return std::ranges::any_of(shared_.options.upgrades,
                             [&](const auto& maker) { return maker->serves(same_host_); });
}

// A link that is only sent on is not read, so the peer's offer or answer would never be seen.
void Link::look_for_upgrade() {
  if (!can_upgrade() || ++looks_ % posts_between_looks != 0) return;
  poll_idle_ = true;
  (void)read();
  poll_idle_ = false;
  try_upgrade();
  if (!out_.empty()) flush();
}

// Connecting side, once the peer's answer has proved its identity, and after each offer that came
// to nothing.
void Link::offer_upgrade() {
  const auto& makers = shared_.options.upgrades;
  while (status_.ok() && next_maker_ < makers.size()) {
    UpgradeMaker& maker = *makers[next_maker_];
    if (!maker.serves(same_host_) || next_choice_ >= (permits(maker) ? maker.choices() : 1)) {
      leave_maker();
      continue;
    }
    const size_t choice = next_choice_++;
    auto made = permits(maker) ? maker.make(base(), choice) : Status(Code::unavailable, in_clear);
    if (made.ok()) {
      std::vector<std::byte> offer{std::byte{maker.id()}};
      offer.insert(offer.end(), made->offer.begin(), made->offer.end());
      upgrade_ = std::move(made->upgrade);
      return push_text(FrameType::offer, offer);
    }
    lack_ = made.status().message();
    peer_lacks_ = false;
  }
  if (status_.ok()) end_offers();
}

// Connecting side. If no maker serves the two, the accepting side knows that without being told.
void Link::end_offers() {
  stay_on_base();
  if (!can_upgrade()) return refused_.ok() ? void() : fail(refused_);
  push_decline(no_more_offers);
  if (!refused_.ok()) flush();  // then the link fails
}

// The link stays on its base.
void Link::stay_on_base() {
  upgrade_decided_ = true;
  const std::string reason = (peer_lacks_ ? "on its side: " : "on this side: ") +
                             (lack_.empty() ? "there is nothing but TCP" : lack_);
  if (shared_.options.needs_upgrade && !same_host_) {
    refused_ = {Code::unavailable,
                "SLUICE_TRANSPORT=verbs does not allow TCP to " + label_ + "; " + reason};
    return;
  }
  if (lack_.empty()) return;
  const bool shown = shared_.reasons.size() < max_reasons_shown && !shared_.reasons.contains(lack_);
  if (shown) shared_.reasons.insert(lack_);
  log(shown ? Level::info : Level::debug, "the connection to %s stays on %s; %s", label_.c_str(),
      carrier_, reason.c_str());
}

void Link::push_text(FrameType type, std::span<const std::byte> text, bool last) {
  Outgoing out{Frame{type, false, static_cast<uint32_t>(text.size())}};
  out.owned = std::make_unique_for_overwrite<std::byte[]>(text.size());
  std::ranges::copy(text, out.owned.get());
  out.last = last;
  out_.push(std::move(out));
}

// It tells this side's reason.
void Link::push_decline(std::byte kind) {
  const std::string_view reason = peer_lacks_ ? std::string_view() : lack_;
  std::vector<std::byte> text{kind};
  const auto words = std::as_bytes(std::span(reason));
  text.insert(text.end(), words.begin(), words.end());
  push_text(FrameType::decline, text, kind == no_more_offers && !refused_.ok());
}

void Link::push_shift() {
  Outgoing out{Frame{FrameType::shift}};
  out.last = true;
  out_.push(std::move(out));
  shifts_ = true;
}

void Link::take_offer() {
  if (connects() || upgrade_) {
    return fail({Code::internal, label_ + " sent OFFER out of turn"});
  }
  const auto text = std::as_bytes(std::span(text_));
  const auto is_named = [&](const auto& maker) {
    return !text.empty() && std::byte{maker->id()} == text[0] && permits(*maker);
  };
  const auto maker = std::ranges::find_if(shared_.options.upgrades, is_named);
  Status why{Code::unavailable, "nothing serves what was offered"};
  if (maker != shared_.options.upgrades.end()) {
    auto attached = (*maker)->attach(text.subspan(1), base());
    if (attached.ok()) {
      upgrade_ = std::move(attached->upgrade);
      return push_text(FrameType::accept, attached->offer);
    }
    why = attached.status();
  }
  lack_ = why.message();
  peer_lacks_ = false;
  push_decline(why.code() == Code::mismatch ? try_another : declined);
}

void Link::take_accept() {
  if (!connects() || !upgrade_ || accepted_) {
    return fail({Code::internal, label_ + " sent ACCEPT without an offer"});
  }
  accepted_ = true;
  const Status accepted = upgrade_->accepted(std::as_bytes(std::span(text_)));
  if (accepted.ok()) return try_upgrade();
  lack_ = accepted.message();
  peer_lacks_ = false;
  withdraw_offer();
}

// Connecting side: what was accepted does not work.
void Link::withdraw_offer() {
  upgrade_.reset();
  accepted_ = false;
  push_decline(declined);
  offer_upgrade();
}

// Between the offer's acceptance and the connecting side's SHIFT.
void Link::try_upgrade() try {
  if (!upgrade_ || quick() || shifts_ || trial_failed_ || (connects() && !accepted_)) return;
  const Result<bool> tried = upgrade_->tried();
  if (tried.ok()) {
    if (*tried && connects()) push_shift();
    return;
  }
  lack_ = tried.status().message();
  peer_lacks_ = false;
  if (connects()) return withdraw_offer();
  trial_failed_ = true;
  push_decline(trial_failed);
} catch (const std::bad_alloc&) {
  fail(shared_.no_memory_to_connect);
}

// Connecting side: the accepting side's trial failed. It may have crossed this side's withdrawal.
void Link::take_failed_trial() {
  const std::string why = text_.substr(1);
  if (!connects()) return fail({Code::internal, label_ + " sent DECLINE out of turn"});
  if (shifts_) {
    return fail({Code::peer_lost, "the connection to " + label_ + " failed; on its side: " + why});
  }
  if (!accepted_) return;
  lack_ = why;
  peer_lacks_ = true;
  withdraw_offer();
}

// Bytes already read after this frame are wake-up bytes. They can be dropped, because the upgrade
// is read next.
void Link::take_shift() {
  if (!upgrade_ || reads_upgraded_ || (connects() && !shifts_)) {
    return fail({Code::internal, label_ + " sent SHIFT without an accepted offer"});
  }
  if (trial_failed_) {
    return fail({Code::peer_lost, "the connection to " + label_ + " failed: " + lack_});
  }
  reads_upgraded_ = upgrade_decided_ = true;
  inbox_.clear();
  if (!connects()) push_shift();
  if (sends_upgraded_) carrier_ = upgrade_->name();
}

void Link::take_decline() {
  const std::byte kind = text_.empty() ? declined : std::byte(text_[0]);
  if (kind == trial_failed) return take_failed_trial();
  const bool final = kind == no_more_offers;
  const bool expected =
      upgrade_ ? !accepted_ && !quick() : final && !connects() && !upgrade_decided_;
  if (!expected) return fail({Code::internal, label_ + " sent DECLINE without an offer"});
  upgrade_.reset();
  trial_failed_ = false;
  if (text_.size() > 1) {
    lack_ = text_.substr(1);
    peer_lacks_ = true;
  }
  if (connects()) {
    if (kind != try_another) leave_maker();
    return offer_upgrade();
  }
  if (!final) return;
  stay_on_base();
  if (!refused_.ok()) fail(refused_);
}

bool Link::may_sleep() {
  if (wanted() && socket_ && way_in().buffered()) return false;
  if (!upgrade_ || !quick()) return true;
  const bool sends = !out_.empty() && send_error_ == 0;
  return upgrade_->may_sleep(reads_upgraded_ && wanted(), sends_upgraded_ && sends);
}

void Link::awake(bool any) {
  if (upgrade_ && quick()) upgrade_->awake(any);
}

}  // namespace sluice
