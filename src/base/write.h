// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace sluice {

// Writes all of the text to a descriptor. 0, or an errno value; then the rest is not written. It
// may block, as the descriptor does. A file that may not become larger (RLIMIT_FSIZE) and a pipe
// that nobody reads are EFBIG and EPIPE, without the signals that would end the program for them.
// Allocates nothing.
[[nodiscard]] int write_all(int fd, std::string_view text);

}  // namespace sluice
