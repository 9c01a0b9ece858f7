// SPDX-License-Identifier: BSD-3-Clause
//
// Messages to people, on standard error, each a whole line written by one call: "sluice: rank 3:
// ...".
#pragma once

#include <string_view>

namespace sluice {

enum class Level { error, warning, info, debug };

// Who speaks, put before every line: "rank 3 of 8". Called once known.
void set_log_prefix(std::string_view prefix);
// The least urgent level that is shown; `warning` until set.
void set_log_level(Level level);
bool log_shown(Level level);

// printf-style. Cuts a line at 1,000 characters.
[[gnu::format(printf, 2, 3)]] void log(Level level, const char* format, ...);
// Lines of any length, written by one call, so that nothing comes between them. They begin with an
// empty one: the program may have begun a line of its own. May throw std::bad_alloc.
void log_lines(Level level, std::string_view lines);

}  // namespace sluice
