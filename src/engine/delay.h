// SPDX-License-Identifier: BSD-3-Clause
//
// SLUICE_DELAY, for tests of trials: calls by one algorithm take longer than they do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace sluice {

class Delay {
 public:
  using Clock = std::chrono::steady_clock;

  // "flat:3,mpi:2.5:1000-1999": calls by `flat` take 3 microseconds longer; MPI's take 2.5 longer
  // if they are the communicator's calls 1000 to 1999. "pretend,flat:3": they do not, but trials
  // measure as if they did. Empty: no delays. A delay is of an hour at most. Errors name what is
  // wrong.
  static Result<Delay> parse(const std::string& text);

  bool empty() const { return items_.empty(); }
  // Counts a call by that algorithm or route, which has just been done, and prolongs it.
  void prolong(std::string_view algorithm);
  // What is pretended of the next call.
  std::chrono::nanoseconds pretended(std::string_view algorithm) const;

 private:
  struct Item {
    std::string algorithm;
    double microseconds;
    uint64_t first, last;
  };
  static bool parse_item(std::string_view text, Item* item);
  std::chrono::nanoseconds find(std::string_view algorithm, uint64_t call) const;

  std::vector<Item> items_;
  bool pretends_ = false;
  uint64_t calls_ = 0;
};

}  // namespace sluice
