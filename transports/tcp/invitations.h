// SPDX-License-Identifier: BSD-3-Clause
//
// What became of one side's invitations to the peer, which is to connect: by the addresses to which
// they went. The link sends them; the connector knows the addresses.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace sluice {

class Invitations {
 public:
  using Clock = std::chrono::steady_clock;

  void note_sent(const std::string& address);
  void note_closed(const std::string& address);
  void note_dropped(const std::string& address) { by_address_.erase(address); }
  // They have met.
  void forget();

  // How many were sent.
  size_t count() const { return count_; }
  // The address of the latest.
  const std::string& latest() const { return latest_; }
  // One is open, as far as this side knows.
  bool is_one_open() const;
  // Each address that was invited has closed an invitation, the latest to do so that long ago.
  bool are_spurned(Clock::duration for_so_long) const;

 private:
  static constexpr Clock::time_point open{};

  std::map<std::string, Clock::time_point> by_address_;  // when closed first; or `open`
  size_t count_ = 0;
  std::string latest_;
};

}  // namespace sluice
