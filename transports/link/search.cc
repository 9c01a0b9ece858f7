// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/search.h"

#include <utility>

namespace sluice {

void Search::begin(Clock::time_point now) {
  *this = {};
  since_ = before_ = looked_ = now;
}

bool Search::is_over(Clock::time_point now, Sign sign, Duration limit) {
  if (std::exchange(looked_, now) < now - longest_gap) since_ = before_ = now;
  const Sign last = std::exchange(last_, sign);
  if (sign != Sign::none && last == Sign::none) before_ = since_;
  if (sign != Sign::none) since_ = now;
  return limit > Duration(0) && now - since_ >= limit;
}

void Search::take_back() {
  if (last_ == Sign::held) since_ = before_;
  last_ = Sign::none;
}

}  // namespace sluice
