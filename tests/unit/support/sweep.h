// SPDX-License-Identifier: BSD-3-Clause
//
// How far tests sweep. The sanitizers make them four and twenty times slower, and the same sweeps
// run without them: with one `make check` takes a part, and `make check-long` all.
#pragma once

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace sluice {

inline bool sweeps_all() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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

template <typename Item>
std::vector<Item> sweep(std::initializer_list<Item> all, std::initializer_list<Item> part) {
  return sweeps_all() ? all : part;
}

}  // namespace sluice
