// SPDX-License-Identifier: BSD-3-Clause
//
// How far tests sweep. The thread sanitizer makes them about twenty times slower, and the same
// sweeps run without it: there `make check` takes a part, and `make check-long` all.
#pragma once

#include <cstdlib>
#include <cstring>

namespace sluice {

inline bool sweeps_all() {
#ifdef __SANITIZE_THREAD__
  const char* const value = std::getenv("CHECK_LONG");
  return value != nullptr && std::strcmp(value, "1") == 0;
#else
  return true;
#endif
}

// `all` where sweeps are whole, else `part`.
template <typename Number>
Number sweep(Number all, Number part) {
  return sweeps_all() ? all : part;
}

}  // namespace sluice
