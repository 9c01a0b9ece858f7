// SPDX-License-Identifier: BSD-3-Clause
//
// Letters, spaces, digits and numbers of ASCII text, the same in every locale: a program sets its
// own (setlocale), which may even differ between ranks.
#pragma once

#include <string>

namespace sluice {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string lower(std::string text) {
  for (char& c : text) c = lower(c);
  return text;
}

constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex_digit(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f'); }

// A number with so many decimals: "0.25". As printf's %.2f in the locale "C".
std::string decimal(double number, int decimals);
// A number with so many significant digits: "0.25", "1e+09". As printf's %.2g there.
std::string significant(double number, int digits);

}  // namespace sluice
