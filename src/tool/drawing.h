// SPDX-License-Identifier: BSD-3-Clause
//
// The drawing of `sluice explain --svg`: one line per rank, time from left to right, an arrow per
// message, coloured by the data it carries, and a symbol for each receive, reduction or copy.
#pragma once

#include <string>

#include "src/tool/study.h"

namespace sluice {

// Returns the content of the SVG file.
std::string draw(const Study& study);

}  // namespace sluice
