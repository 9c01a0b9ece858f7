// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/wait_limits.h"

#include <algorithm>

#include "src/base/log.h"

namespace sluice {
namespace {

using std::chrono::nanoseconds;

// No limit is the longest.
nanoseconds limit(double seconds) {
  return seconds > 0
             ? std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds))
             : nanoseconds::max();
}

}  // namespace

nanoseconds WaitLimits::least() const {
  return std::min(limit(knobs_.timeout), limit(knobs_.warn_after));
}

Status WaitLimits::check(nanoseconds waited, const Text& what, const Text& call, uint32_t number) {
  const bool late = waited > limit(knobs_.timeout);
  const bool warn = warned_of_ != number && waited > limit(knobs_.warn_after);
  if (!late && !warn) return {};
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(waited);
  const std::string text = "waited " + std::to_string(whole.count()) + " s for " + what();
  if (late) return {Code::timeout, text + " (SLUICE_TIMEOUT)"};
  warned_of_ = number;
  log(Level::warning, "%s: %s; still waiting", call().c_str(), text.c_str());
  return {};
}

}  // namespace sluice
