// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/spread_probe.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

namespace sluice {
namespace {

constexpr int most_shut = 4;   // of a window's time, one of so many parts
constexpr double much = 0.25;  // of this link's rate: what others send

double per_second(uint64_t bytes, std::chrono::nanoseconds time) {
  return static_cast<double>(bytes) / std::max(std::chrono::duration<double>(time).count(), 1e-9);
}

// That the link has sent over all its connections.
uint64_t bytes_of(const SpreadProbe::Sample& sample) {
  return sample.alone.acknowledged + sample.spread.acknowledged;
}

}  // namespace

SpreadProbe::State SpreadProbe::step(State state, Event event) {
  struct Row {
    State state;
    Event event;
    State next;
  };
  static constexpr Row rows[] = {
      {State::warming, Event::warm, State::alone},
      {State::warming, Event::unclear, State::resting},
      {State::warming, Event::tired, State::one},

      {State::alone, Event::measured, State::awaiting},
      {State::alone, Event::unclear, State::resting},
      {State::alone, Event::tired, State::one},

      {State::awaiting, Event::ready, State::joining},
      {State::awaiting, Event::unclear, State::resting},
      {State::awaiting, Event::tired, State::one},

      {State::joining, Event::warm, State::together},
      {State::joining, Event::unclear, State::resting},
      {State::joining, Event::tired, State::one},

      {State::together, Event::better, State::parting},
      {State::together, Event::worse, State::one},
      {State::together, Event::unclear, State::resting},
      {State::together, Event::tired, State::one},

      {State::parting, Event::warm, State::again},
      {State::parting, Event::unclear, State::resting},
      {State::parting, Event::tired, State::one},

      {State::again, Event::better, State::several},
      {State::again, Event::worse, State::one},
      {State::again, Event::unclear, State::resting},
      {State::again, Event::tired, State::one},

      {State::resting, Event::rested, State::warming},
  };
  const auto* const row = std::ranges::find_if(
      rows, [&](const Row& each) { return each.state == state && each.event == event; });
  return row == std::end(rows) ? state : row->next;
}

void SpreadProbe::enter(Event event) {
  const State next = step(state_, event);
  if (next == state_) return;
  state_ = next;
  sent_ = 0;
  full_ = spoiled_ = 0;
  has_last_ = in_window_ = false;
  if (state_ == State::warming) result_ = {};
}

// The probe said nothing.
void SpreadProbe::rest() {
  if (++tries_ >= most_tries) return enter(Event::tired);
  if (tries_ > 1) rest_ *= rest_growth;
  enter(Event::unclear);
}

void SpreadProbe::note_send(size_t bytes) {
  if (is_decided()) return;
  sent_ += bytes;
  if (state_ == State::resting) {
    if (sent_ > rest_) enter(Event::rested);
  } else if (sent_ > most_bytes) {
    rest();
  }
}

void SpreadProbe::note_ready(size_t rails) {
  rails_ = rails;
  enter(Event::ready);
}

bool SpreadProbe::observe(const Sample& sample, const Interfaces& interfaces) {
  if (!watches()) return false;
  const uint64_t acknowledged = measured(sample).acknowledged;
  if (!has_last_) warm_from_ = acknowledged;
  const bool goes_on = has_last_ && acknowledged >= measured(last_).acknowledged;
  const Sample before = goes_on ? last_ : sample;
  last_ = sample;
  has_last_ = true;
  if (!goes_on) in_window_ = false;  // it is new, or another connection has taken one's place
  if (warms()) {
    warm(sample);
  } else if (!in_window_) {
    begin_window(sample, interfaces);
  } else {
    window_.add(before, measured(before), sample, measured(sample));
    if (window_.is_full()) end_window(sample, interfaces);
  }
  return is_decided();
}

void SpreadProbe::warm(const Sample& sample) {
  const uint64_t acknowledged = measured(sample).acknowledged;
  const bool is_disturbed = !spreads() && (sample.spread_waits || sample.spread.outstanding > 0);
  warm_from_ = is_disturbed ? acknowledged : std::min(warm_from_, acknowledged);
  const uint64_t enough = state_ == State::joining ? joint_warm_up : warm_up;
  if (acknowledged - warm_from_ >= enough) enter(Event::warm);
}

// An interval counts if there was enough to send all the time: enough is left at its end, and
// nothing was written since its beginning. If less is left, all may have gone in a part of the
// interval; it counts if that was fast even for all of it. (Else a fast flow would be seen only
// when something slows it.) The process may have lost its processor while it took a sample.
void SpreadProbe::Window::add(const Sample& before, const Flow& then, const Sample& now,
                              const Flow& is) {
  const uint64_t bytes = is.acknowledged - then.acknowledged;
  const std::chrono::nanoseconds longest = now.to - before.from;
  const bool was_busy = is.outstanding >= least_busy;
  const bool was_fast =
      busy_.count() > 0 && per_second(bytes, longest) >= per_second(bytes_, busy_);
  if (!was_busy && !was_fast) return;
  busy_ += was_busy ? now.from - before.from : longest;
  bytes_ += bytes;
  shut_ += is.shut - then.shut;
}

SpreadProbe::Window::Window(const Sample& sample, uint64_t host)
    : began_(sample.from), here_(bytes_of(sample)), host_(host) {}

bool SpreadProbe::Window::is_spoiled(size_t connections) const {
  return shut_ * most_shut > busy_ * static_cast<int64_t>(connections);
}

SpreadProbe::Rates SpreadProbe::Window::rates(const Sample& sample, uint64_t host) const {
  const uint64_t here = bytes_of(sample) - here_, sent = host - std::min(host, host_);
  return {per_second(bytes_, busy_), per_second(sent - std::min(sent, here), sample.from - began_)};
}

void SpreadProbe::begin_window(const Sample& sample, const Interfaces& interfaces) {
  window_ = Window(sample, interfaces());
  in_window_ = true;
}

void SpreadProbe::end_window(const Sample& sample, const Interfaces& interfaces) {
  const bool joint = state_ == State::together;
  if (window_.is_spoiled(joint ? rails_ : 1)) {
    return ++spoiled_ < most_spoiled ? begin_window(sample, interfaces) : rest();
  }
  found_[full_] = window_.rates(sample, interfaces());
  if (++full_ < windows) return begin_window(sample, interfaces);
  std::ranges::sort(found_, std::greater<>(), &Rates::here);
  Rates& result = result_[joint ? 1 : 0];
  if (joint) {
    result = found_[windows / 2];
  } else {
    result.here = std::max(result.here, found_.front().here);
    for (const Rates& each : found_) result.elsewhere = std::max(result.elsewhere, each.elsewhere);
  }
  state_ == State::alone ? enter(Event::measured) : decide(sample.neighbours);
}

void SpreadProbe::decide(bool neighbours) {
  const auto& [one, several] = result_;
  const double gained = several.here - one.here, lost_elsewhere = one.elsewhere - several.elsewhere;
  const bool is_fair = neighbours || lost_elsewhere <= gained / 2;
  const bool is_better = several.here >= margin * one.here && is_fair;
  if (is_better) return enter(Event::better);
  const bool others_sent =
      std::max(one.elsewhere / one.here, several.elsewhere / several.here) > much;
  others_sent ? rest() : enter(Event::worse);
}

std::array<char, 128> SpreadProbe::findings() const {
  const auto& [one, several] = result_;
  const bool is_known = one.here > 0 && several.here > 0;
  std::array<char, 128> text;
  const size_t uses = state_ == State::several ? rails_ : 1;
  if (is_known) {
    std::snprintf(text.data(), text.size(),
                  "one connection carries %.0f MB/s, %zu carry %.0f: uses %zu", one.here / 1e6,
                  rails_, several.here / 1e6, uses);
  } else {
    std::snprintf(text.data(), text.size(),
                  "no probe of several connections told anything: uses %zu", uses);
  }
  return text;
}

}  // namespace sluice
