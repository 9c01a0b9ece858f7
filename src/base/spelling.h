// SPDX-License-Identifier: BSD-3-Clause
//
// What somebody may have meant by a name that does not exist.
#pragma once

#include <span>
#include <string>

namespace sluice {

// The nearest of `names` (by Levenshtein's distance) to `name`, which begins with `prefix` as they
// do; empty if none is near: more than half of its own letters would have to change.
std::string nearest_name(const std::string& name, const std::string& prefix,
                         std::span<const std::string> names);

}  // namespace sluice
