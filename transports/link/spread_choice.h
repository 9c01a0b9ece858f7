// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the large messages of a link are spread over its rails (rails.h): always, or as a probe
// says (spread_probe.h), which this runs. It says when rails are to be made for that.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "transports/link/spread_probe.h"

namespace sluice {

class SpreadChoice {
 public:
  using Clock = std::chrono::steady_clock;

  // tries: by a probe. most: rails of a link.
  SpreadChoice(bool tries, size_t most) : most_(most) {
    if (tries) probe_.emplace();
  }

  // A large message of so many bytes is expected.
  void note_expected(size_t bytes) { expected_ += bytes; }
  // One has come: in parts, over rails, or not.
  void note_received(bool in_parts) { peer_spreads_ = in_parts; }
  // One is to be sent now, and so many rails are open: whether to spread it.
  bool spreads(size_t bytes, size_t open);
  // Rails are to be made, because a large message is sent or expected, or because this side's probe
  // awaits them or the peer's may.
  bool wants_rails() const;

  // A probe measures.
  bool measures() const { return probe_ && probe_->watches(); }
  // While it does: whether observe() is to be called now: always before this side writes, and often
  // while it waits.
  bool is_due(Clock::time_point now, bool will_write);
  void observe(const SpreadProbe::Sample& sample, const SpreadProbe::Interfaces& interfaces);
  // The same, and there was enough outstanding to learn something.
  bool watches() const { return measures() && is_busy_; }

  // What the probe has found, once it has ended. Only the first call gets it.
  std::optional<std::array<char, 128>> news();
  // A probe has chosen several.
  bool has_chosen_several() const {
    return probe_ && probe_->state() == SpreadProbe::State::several;
  }
  // One of the two sides spreads, not only to try it.
  bool is_in_use() const;

 private:
  const size_t most_;
  std::optional<SpreadProbe> probe_;
  uint64_t expected_ = 0;  // bytes of large messages
  uint64_t awaiting_ = 0;  // bytes of those that were sent while the probe awaited rails
  Clock::time_point looked_{};
  bool is_busy_ = false;
  bool peer_spreads_ = false;  // its last large message
  bool has_told_ = false;
};

}  // namespace sluice
