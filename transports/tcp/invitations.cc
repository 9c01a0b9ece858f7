// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/invitations.h"

#include <algorithm>

namespace sluice {

void Invitations::note_sent(const std::string& address) {
  by_address_.try_emplace(address);
  latest_ = address;
  ++count_;
}

void Invitations::note_closed(const std::string& address) {
  const auto found = by_address_.find(address);
  if (found != by_address_.end() && found->second == open) found->second = Clock::now();
}

void Invitations::forget() {
  by_address_.clear();
  count_ = 0;
}

bool Invitations::is_one_open() const {
  return std::ranges::any_of(by_address_, [](const auto& each) { return each.second == open; });
}

bool Invitations::are_spurned(Clock::duration for_so_long) const {
  const auto now = Clock::now();
  return !by_address_.empty() && std::ranges::all_of(by_address_, [&](const auto& each) {
    return each.second != open && now - each.second >= for_so_long;
  });
}

}  // namespace sluice
