// SPDX-License-Identifier: BSD-3-Clause
//
// How far tests sweep: in `make check-long` all, in `make check` a part, and with the sanitizers,
// which make sweeps four and twenty times slower, less of it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace sluice {

inline bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

inline bool sweeps_all() {
  const char* const value = std::getenv("CHECK_LONG");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

template <typename Number>
Number sweep(Number all, Number part, Number sanitized) {
  if (sweeps_all()) return all;
  return is_sanitized() ? sanitized : part;
}

template <typename Item>
std::vector<Item> sweep(std::initializer_list<Item> all, std::initializer_list<Item> part,
                        std::initializer_list<Item> sanitized) {
  if (sweeps_all()) return all;
  return is_sanitized() ? sanitized : part;
}

}  // namespace sluice
