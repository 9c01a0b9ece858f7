// SPDX-License-Identifier: BSD-3-Clause
//
// System calls in a process whose signal handlers are the program's, and may leave errno changed.
#pragma once

#include <cerrno>
#include <string>

#include "src/base/status.h"

namespace sluice {

// Whether a non-blocking call would block (EAGAIN), or goes on (EINPROGRESS).
inline bool is_not_yet(int error) {
  return error == EAGAIN || error == EINPROGRESS || error == EALREADY;
}

// Makes a system call: a function that returns a negative number and sets errno if it fails.
// Returns what it returned, or the errno value, negated: never EINTR, then the call is made again.
//
// A signal handler may run between the failure and the reading of errno, and leave any value there.
// So the call is made again before an error is believed, other than is_not_yet: an error that
// matters is there the second time, too. The second one is returned. `first`: if given, the error
// of the first time, 0 if there was none. (A socket reports once what broke its connection.)
template <typename Call>
auto system_call(Call call, int* first = nullptr) -> decltype(call()) {
  int earlier = 0;
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    const int error = errno;
    if (error == EINTR) continue;
    if (earlier != 0 || is_not_yet(error)) return -error;
    earlier = error;
    if (first) *first = error;
  }
}

// The text of an errno value: "Connection refused".
std::string error_text(int error);

// Code::unavailable, "what: " with the text of an errno value, which Status::error keeps.
Status system_error(const std::string& what, int error);

}  // namespace sluice
