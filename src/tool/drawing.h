// SPDX-License-Identifier: BSD-3-Clause
//
// The drawing of `sluice explain --svg`: ranks below each other, time from left to right, an arrow
// for every message in the colour of the data that it carries, a mark where something is received,
// reduced or copied.
#pragma once

#include <string>

#include "src/tool/study.h"

namespace sluice {

// The whole file.
std::string draw(const Study& study);

}  // namespace sluice
