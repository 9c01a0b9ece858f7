// SPDX-License-Identifier: BSD-3-Clause
//
// SLUICE_TIMEOUT and SLUICE_WARN_AFTER: what ends a call's wait, or reports it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/knobs.h"
#include "src/base/status.h"

namespace sluice {

class WaitLimits {
 public:
  using Text = std::function<std::string()>;

  // The knobs are read at each check, and must outlive this.
  explicit WaitLimits(const Knobs& knobs) : knobs_(knobs) {}
  // A wait of this length, or more, is to be checked.
  std::chrono::nanoseconds least() const;
  // Fails if the wait has lasted too long; warns once a call. what: is waited for. number: the
  // call's; 0 if there is one call only.
  Status check(std::chrono::nanoseconds waited, const Text& what, const Text& call,
               uint32_t number = 0);

 private:
  const Knobs& knobs_;
  std::optional<uint32_t> warned_of_;
};

}  // namespace sluice
