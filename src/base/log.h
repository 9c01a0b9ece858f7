// SPDX-License-Identifier: BSD-3-Clause
//
// Messages to the user on standard error, such as "sluice: rank 3: ...". Each message is one line,
// written by one system call.
#pragma once

#include <string_view>

namespace sluice {

enum class Level { error, warning, info, debug };

// Text put before each line, such as "rank 3 of 8". Set once the rank is known.
void set_log_prefix(std::string_view prefix);
// The least urgent level that is shown; `warning` by default.
void set_log_level(Level level);
bool log_shown(Level level);

// printf-style. Lines are cut at 1,000 characters.
[[gnu::format(printf, 2, 3)]] void log(Level level, const char* format, ...);
// Prints lines of any length in one write, so that other output does not come between them. Starts
// with an empty line, because the program may have left a line unfinished. May throw
// std::bad_alloc.
void log_lines(Level level, std::string_view lines);

}  // namespace sluice
