// SPDX-License-Identifier: BSD-3-Clause
//
// Shows the fastest algorithms that a tuning found, for people.
#pragma once

#include <string>

#include "src/tool/tuning.h"

namespace sluice {

// A table with one line for each rule.
std::string winners_table(const TuningLog& log, const Tuning& tuning);

// SVG: a row for each collective and number of ranks, a cell per size in the winner's colour.
std::string draw_winners(const TuningLog& log, const Tuning& tuning);

}  // namespace sluice
