// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/trial.h"

#include <algorithm>
#include <bit>

namespace sluice {

void Trial::enter(State state) {
  state_ = state;
  calls_ = 0;
}

void Trial::begin_window_if_time() {
  const bool is_time = (state_ == State::waiting && calls_ == calls_before_trying) ||
                       (state_ == State::settled && calls_ == gap_);
  if (is_time) enter(State::trying);
}

Trial::Due Trial::due() {
  begin_window_if_time();
  if (state_ == State::waiting) {
    return !has_looked_ && calls_ == calls_before_look ? Due::time_spent : Due::nothing;
  }
  if (state_ != State::trying) return Due::nothing;
  if (calls_ == window_length()) return Due::window;
  return has_memory_ ? Due::nothing : Due::memory;
}

void Trial::learn_time_spent(std::chrono::nanoseconds spent) {
  has_looked_ = true;
  if (spent >= long_enough) enter(State::trying);
}

void Trial::learn_memory(bool all, size_t bytes) {
  if (calls_ == 0) bytes_ = bytes;
  has_memory_ = all;
  if (all) return;
  gap_ = std::max(gap_, std::min(gap_ * 2, usual_gap));
  end_window();
}

Trial::Next Trial::next(size_t bytes) {
  begin_window_if_time();
  if (state_ == State::trying)
    return is_alike(bytes) ? next_of_window() : Next{choice_, false, false, 0};
  const auto place = static_cast<uint8_t>(calls_++);
  const bool is_first = state_ == State::waiting && place < calls_before_look;
  return {choice_, is_first, is_first, place};
}

Trial::Next Trial::next_of_window() {
  const uint32_t call = calls_++;
  if (call == 0) return {choice_, true, false, 0};
  const uint32_t turn = (call - 1) / calls_in_turn, in_turn = (call - 1) % calls_in_turn;
  return {candidate_at(turn), true, in_turn == calls_in_turn - 1, static_cast<uint8_t>(turn)};
}

size_t Trial::longest_of_window(size_t next) const {
  const size_t first = calls_ == 0 ? next : bytes_;
  return first + first / 8;
}

// Whether the window takes a call of that size.
bool Trial::is_alike(size_t bytes) {
  if (calls_ > 0 && strays_ == most_strays) calls_ = 0;
  if (calls_ == 0) {
    if (bytes > bytes_) lose_memory();
    bytes_ = bytes;
    strays_ = 0;
  }
  const size_t tolerance = bytes_ / 8;
  const bool is_alike = bytes >= bytes_ - tolerance && bytes <= bytes_ + tolerance;
  if (!is_alike) ++strays_;
  return is_alike;
}

uint32_t Trial::uneventful() const {
  switch (state_) {
    case State::waiting:
      return has_looked_ ? calls_before_trying - calls_ : 0;
    case State::trying:
      return 0;
    case State::settled:
      return gap_ - calls_;
    case State::closed:
      break;
  }
  return most_gap;
}

// (Of three and more, each turn is the one before, rotated, and every second one is reversed.)
uint8_t Trial::candidate_at(uint32_t place) const {
  const uint32_t turn = place / candidates_, in_turn = place % candidates_;
  if (candidates_ == 2) return static_cast<uint8_t>(std::popcount(place) % 2);
  const uint32_t straight = (in_turn + turn / 2) % candidates_;
  return static_cast<uint8_t>(turn % 2 == 0 ? straight : candidates_ - 1 - straight);
}

// The fastest of those that are clearly faster than the choice, mostly and on average; else the
// choice.
uint8_t Trial::find_leader(const Result& result) const {
  uint8_t leader = choice_;
  for (uint8_t other = 0; other < candidates_; ++other) {
    const Bounds& bounds = result.by_candidate[other];
    if (!bounds.is_clearly_below(result.by_candidate[choice_])) continue;
    if (result.mean[other] > result.mean[choice_]) continue;
    if (leader == choice_ || bounds.high < result.by_candidate[leader].high) leader = other;
  }
  return leader;
}

void Trial::learn(const Result& result) {
  const uint8_t leader = find_leader(result);
  wins_ = leader == leader_ ? wins_ + 1 : 1;
  leader_ = leader;
  if (leader != choice_) {
    if (wins_ < needed_wins()) return enter(State::trying);
    choice_ = leader;
    is_new_ = true;
    ++changes_;
    return settle(result, true);
  }
  // A machine that has become busy: what was measured before holds no longer.
  const Bounds &now = result.by_candidate[choice_], &before = last_.by_candidate[choice_];
  const bool has_shifted = now.is_known() && before.is_known() &&
                           (now.low > 2 * before.high || before.low > 2 * now.high);
  if (has_shifted && !has_repeated_) {
    has_repeated_ = true;
    gap_ = first_gap;
    last_ = result;
    return enter(State::trying);
  }
  settle(result, has_shifted || has_repeated_);
}

void Trial::settle(const Result& result, bool has_changed) {
  const bool is_known = result.by_candidate[choice_].is_known();
  const bool is_first = !last_.by_candidate[choice_].is_known();
  const uint32_t doubled = std::min(gap_ * 2, usual_gap);
  gap_ = has_changed || is_first ? first_gap : is_known ? doubled : std::max(gap_, doubled);
  if (is_known) {
    const uint32_t most = is_new_ ? settling_calls(result) : most_gap;
    gap_ = std::max(gap_, std::min(least_gap(result), most));
    is_new_ = false;
    last_ = result;
  }
  end_window();
}

void Trial::end_window() {
  leader_ = choice_;
  wins_ = 0;
  has_repeated_ = false;
  lose_memory();
  enter(State::settled);
}

// (Each change gives results other bits, and is worth less if it is soon undone.)
uint32_t Trial::needed_wins() const { return std::clamp(changes_ + 1, least_wins, most_wins); }

// What a window costs: the exchanges, and the calls by candidates that are slower than the choice.
uint32_t Trial::least_gap(const Result& result) const {
  const double usual = result.by_candidate[choice_].high;
  double cost = result.overhead;
  for (uint8_t other = 0; other < candidates_; ++other) {
    const Bounds& bounds = result.by_candidate[other];
    const double longest = std::max(bounds.high - usual, result.mean[other] - result.mean[choice_]);
    if (bounds.is_known()) cost += turns * calls_in_turn * std::max(longest, 0.0);
  }
  const double calls = cost / most_cost / std::max(usual, 1.0);
  return static_cast<uint32_t>(std::min<double>(calls, most_gap));
}

uint32_t Trial::settling_calls(const Result& result) const {
  const double usual = result.by_candidate[choice_].high;
  const double calls =
      std::chrono::nanoseconds(settling) / std::chrono::nanoseconds(1) / std::max(usual, 1.0);
  return static_cast<uint32_t>(std::clamp<double>(calls, usual_gap, most_gap));
}

}  // namespace sluice
