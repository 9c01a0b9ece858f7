// SPDX-License-Identifier: BSD-3-Clause
//
// For how long a peer is looked for whose connection broke (resumption.h). Its process may be busy
// for any time, but its host's kernel takes connections. So only the time counts in which nobody
// showed that the peer lives; what shows it is in Sign. Anybody can take a connection at an address
// where another machine is, too, in another network, so an address counts once it has answered as
// the peer. No number of attempts ends a search: a network may come and go many times within the
// limit, SLUICE_PEER_TIMEOUT.
//
// It is pure but for the time; Link tells it what connections show.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

class Search {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;

  enum class Sign : uint8_t {
    none,
    held,   // an address that has answered as the peer holds this side's greeting
            // or invitation, and has acknowledged it, for time_to_hold
    proves  // the peer has greeted, and its last proof is awaited
  };
  // Words that are dropped before have shown nothing.
  static constexpr Duration time_to_hold{1000};
  // A link that has not been looked at for so long was not waited for meanwhile (Vigil).
  static constexpr Duration longest_gap{2000};

  void begin(Clock::time_point now);
  // Called about twice a second while it lasts. Whether nobody has answered for the limit (0:
  // never).
  bool is_over(Clock::time_point now, Sign sign, Duration limit);
  // Who held this side's words has dropped them without an answer, and was somebody else, perhaps.
  void take_back();

  // Between two attempts.
  void pause(Clock::time_point now, Duration time) { dials_at_ = now + time; }
  bool may_dial(Clock::time_point now) const { return now >= dials_at_; }

 private:
  Clock::time_point since_{}, looked_{}, dials_at_{};
  Clock::time_point before_{};  // since_ before the words were held that are, or were last
  Sign last_ = Sign::none;
};

}  // namespace sluice
