// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/spread_choice.h"

#include <utility>

namespace sluice {
namespace {

// In bytes of large messages: from when on the peer's trial may await rails; after which this
// side's goes on with fewer.
constexpr uint64_t most_expected = 3 << 20, most_awaiting = 16 << 20;
constexpr size_t least_rails = 2;  // for a trial
constexpr std::chrono::microseconds between_looks{100};

}  // namespace

bool SpreadChoice::spreads(size_t bytes, size_t open) {
  if (!trial_) return true;
  trial_->note_send(bytes);
  if (trial_->state() == SpreadTrial::State::awaiting) {
    awaiting_ += bytes;
    if (open >= (awaiting_ > most_awaiting ? least_rails : most_)) trial_->note_ready(open);
  }
  return trial_->spreads();
}

bool SpreadChoice::wants_rails() const {
  return !trial_ || trial_->state() == SpreadTrial::State::awaiting || expected_ > most_expected;
}

bool SpreadChoice::is_due(Clock::time_point now, bool will_write) {
  if (!will_write && now - looked_ < between_looks) return false;
  looked_ = now;
  return true;
}

void SpreadChoice::observe(const SpreadTrial::Sample& sample,
                           const SpreadTrial::Interfaces& interfaces) {
  is_busy_ = sample.alone.outstanding + sample.spread.outstanding >= SpreadTrial::least_busy;
  (void)trial_->observe(sample, interfaces);
}

std::optional<std::array<char, 128>> SpreadChoice::news() {
  const bool is_new = trial_ && trial_->is_decided() && !std::exchange(has_told_, true);
  return is_new ? std::optional(trial_->findings()) : std::nullopt;
}

bool SpreadChoice::is_in_use() const { return !trial_ || has_chosen_several() || peer_spreads_; }

}  // namespace sluice
