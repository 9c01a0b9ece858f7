// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/spread_choice.h"

#include <utility>

namespace sluice {
namespace {

// In bytes of large messages: from when on the peer's probe may await rails; after which this
// side's goes on with fewer.
constexpr uint64_t most_expected = 3 << 20, most_awaiting = 16 << 20;
constexpr size_t least_rails = 2;  // for a probe
constexpr std::chrono::microseconds between_looks{100};

}  // namespace

bool SpreadChoice::spreads(size_t bytes, size_t open) {
  if (!probe_) return true;
  probe_->note_send(bytes);
  if (probe_->state() == SpreadProbe::State::awaiting) {
    awaiting_ += bytes;
    if (open >= (awaiting_ > most_awaiting ? least_rails : most_)) probe_->note_ready(open);
  }
  return probe_->spreads();
}

bool SpreadChoice::wants_rails() const {
  return !probe_ || probe_->state() == SpreadProbe::State::awaiting || expected_ > most_expected;
}

bool SpreadChoice::is_due(Clock::time_point now, bool will_write) {
  if (!will_write && now - looked_ < between_looks) return false;
  looked_ = now;
  return true;
}

void SpreadChoice::observe(const SpreadProbe::Sample& sample,
                           const SpreadProbe::Interfaces& interfaces) {
  is_busy_ = sample.alone.outstanding + sample.spread.outstanding >= SpreadProbe::least_busy;
  (void)probe_->observe(sample, interfaces);
}

std::optional<std::array<char, 128>> SpreadChoice::news() {
  const bool is_new = probe_ && probe_->is_decided() && !std::exchange(has_told_, true);
  return is_new ? std::optional(probe_->findings()) : std::nullopt;
}

bool SpreadChoice::is_in_use() const { return !probe_ || has_chosen_several() || peer_spreads_; }

}  // namespace sluice
