// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/plain_text.h"

#include <charconv>
#include <iterator>

namespace sluice {
namespace {

std::string print(double number, std::chars_format format, int precision) {
  char text[512];  // the largest number has 309 digits before its point
  const auto [end, error] =
      std::to_chars(std::begin(text), std::end(text), number, format, precision);
  return error == std::errc() ? std::string(text, end) : "?";
}

}  // namespace

std::string decimal(double number, int decimals) {
  return print(number, std::chars_format::fixed, decimals);
}

std::string significant(double number, int digits) {
  return print(number, std::chars_format::general, digits);
}

}  // namespace sluice
