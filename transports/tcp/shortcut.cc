// SPDX-License-Identifier: BSD-3-Clause
//
// How a link is upgraded from its socket to a shortcut, and sleeps with it.
#include <algorithm>
#include <span>
#include <utility>

#include "transports/tcp/link.h"

namespace sluice {
namespace {

constexpr uint32_t posts_between_looks = 16;

}  // namespace

// A link that is only sent on is not read, so the peer's offer or answer would never be seen.
void Link::look_for_shortcut() {
  if (!same_host_ || shared_.options.shortcuts == nullptr) return;
  if (++looks_ % posts_between_looks != 0) return;
  curious_ = true;
  (void)read();
  curious_ = false;
  if (!out_.empty()) flush();
}

// Called on the connecting side once the peer's answer has proved its identity.
void Link::offer_shortcut() {
  if (!status_.ok() || !same_host_ || shared_.options.shortcuts == nullptr) return;
  auto made = shared_.options.shortcuts->make(socket_.fd());
  settled_ = !made.ok();
  if (settled_) return;
  Outgoing out{Frame{FrameType::offer, false, static_cast<uint32_t>(made->offer.size())}};
  out.owned = std::make_unique_for_overwrite<std::byte[]>(made->offer.size());
  std::copy(made->offer.begin(), made->offer.end(), out.owned.get());
  shortcut_ = std::move(made->shortcut);
  out_.push(std::move(out));
}

void Link::take_offer() {
  if (connects() || shortcut_) {
    return fail({Code::internal, label_ + " offered a shortcut out of turn"});
  }
  if (shared_.options.shortcuts != nullptr) {
    auto attached =
        shared_.options.shortcuts->attach(std::as_bytes(std::span(text_)), socket_.fd());
    if (attached.ok()) shortcut_ = std::move(*attached);
  }
  settled_ = !shortcut_;
  out_.push({Frame{shortcut_ ? FrameType::shift : FrameType::decline}});
}

// Bytes already read after this frame are doorbell bytes. They can be dropped, because the shortcut
// is read next.
void Link::take_shift() {
  if (!shortcut_ || reads_short_) {
    return fail({Code::internal, label_ + " takes a shortcut that it has not"});
  }
  reads_short_ = settled_ = true;
  inbox_.clear();
  if (connects()) out_.push({Frame{FrameType::shift}});
}

void Link::take_decline() {
  if (!connects() || quick()) {
    return fail({Code::internal, label_ + " declines what it was not offered"});
  }
  settled_ = true;
  shortcut_.reset();
}

// The SHIFT frame has been sent.
void Link::shift_sending() {
  sends_short_ = true;
  shortcut_->take_socket();
}

bool Link::may_sleep() {
  if (!shortcut_ || !quick()) return true;
  const bool sends = !out_.empty() && send_error_ == 0;
  return shortcut_->may_sleep(reads_short_ && wanted(), sends_short_ && sends);
}

void Link::awake() {
  if (shortcut_ && quick()) shortcut_->awake();
}

const char* Link::carrier() const {
  return sends_short_ && reads_short_ ? shared_.options.shortcuts->name() : "tcp";
}

}  // namespace sluice
