// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/wait_limits.h"

#include <algorithm>

#include "src/base/log.h"

namespace sluice {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds never = nanoseconds::max();

nanoseconds limit(double seconds) {
  return seconds > 0
             ? std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds))
             : never;
}

}  // namespace

WaitLimits::WaitLimits(const Knobs& knobs)
    : timeout_(limit(knobs.timeout)),
      warn_after_(limit(knobs.warn_after)),
      least_(std::min(timeout_, warn_after_)) {}

Status WaitLimits::check(nanoseconds waited, const Text& what, const Text& call) {
  const bool late = waited > timeout_, warn = !warned_ && waited > warn_after_;
  if (!late && !warn) return {};
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(waited);
  const std::string text = "waited " + std::to_string(whole.count()) + " s for " + what();
  if (late) return {Code::timeout, text + " (SLUICE_TIMEOUT)"};
  warned_ = true;
  log(Level::warning, "%s: %s; still waiting", call().c_str(), text.c_str());
  return {};
}

}  // namespace sluice
