// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace sluice {

// Writes all of the text to a descriptor. 0, or an errno value; then the rest is not written. It
// may block, as the descriptor does. A file at its size limit (RLIMIT_FSIZE) is EFBIG, and a pipe
// without a reader is EPIPE, without the signals that would end the program. Allocates nothing.
[[nodiscard]] int write_all(int fd, std::string_view text);

}  // namespace sluice
