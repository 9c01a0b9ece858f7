// SPDX-License-Identifier: BSD-3-Clause
//
// How far tests sweep: in `make check-long` all, where CI calls `make check` a part, and less of it
// in `make check` and with the sanitizers, which make sweeps four and twenty times slower.
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

inline bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && std::strcmp(value, "1") == 0;
}

inline bool sweeps_all() { return is_set("CHECK_LONG"); }

template <typename Number>
Number sweep(Number all, Number part, Number less) {
  if (sweeps_all()) return all;
  return is_set("CHECK_WHOLE") && !is_sanitized() ? part : less;
}

template <typename Item>
std::vector<Item> sweep(std::initializer_list<Item> all, std::initializer_list<Item> part,
                        std::initializer_list<Item> less) {
  if (sweeps_all()) return all;
  return is_set("CHECK_WHOLE") && !is_sanitized() ? part : less;
}

}  // namespace sluice
