// SPDX-License-Identifier: BSD-3-Clause
//
// Suggestions for misspelled names.
#pragma once

#include <span>
#include <string>

namespace sluice {

// The one of `names` nearest to `name` by Levenshtein distance; empty if none is near. `name` and
// all `names` begin with `prefix`. A name is near if the distance is at most half of the letters
// after the prefix (at least 1).
std::string nearest_name(const std::string& name, const std::string& prefix,
                         std::span<const std::string> names);

}  // namespace sluice
