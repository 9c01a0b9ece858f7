// SPDX-License-Identifier: BSD-3-Clause
//
// Who wins where, of a tuning: for people.
#pragma once

#include <string>

#include "src/tool/tuning.h"

namespace sluice {

// A line for each rule.
std::string winners_table(const TuningLog& log, const Tuning& tuning);

// A row for each collective and number of ranks, a field for each size, in the winner's colour.
std::string draw_winners(const TuningLog& log, const Tuning& tuning);

}  // namespace sluice
