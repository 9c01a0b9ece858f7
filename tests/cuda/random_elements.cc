// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/random_elements.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace test {
namespace {

// A number that elements are made of.
struct Number {
  bool is_floating;
  unsigned bytes, fraction;  // fraction: bits of it, of floating ones
};

// "float64_int32" and "complex64" are two numbers, "uint8" is one.
std::vector<Number> numbers_of(sluice::Type type) {
  std::string_view name = to_string(type);
  const auto number = [](std::string_view text) -> Number {
    const unsigned bits = static_cast<unsigned>(
        std::stoul(std::string(text.substr(text.find_first_of("0123456789")))));
    if (text.starts_with("bfloat")) return {true, 2, 7};
    if (text.starts_with("float"))
      return {true, bits / 8, bits == 16 ? 10U : bits == 32 ? 23U : 52U};
    return {false, bits / 8, 0};
  };
  if (name == "complex64") return {number("float32"), number("float32")};
  if (name == "complex128") return {number("float64"), number("float64")};
  const size_t joint = name.find('_');
  if (joint == name.npos) return {number(name)};
  return {number(name.substr(0, joint)), number(name.substr(joint + 1))};
}

uint64_t floating(const Number& number, std::mt19937_64* random) {
  const uint64_t draw = (*random)(), bits = (*random)();
  const uint64_t sign = draw >> 63 << (8 * number.bytes - 1), one = uint64_t{1} << number.fraction;
  const uint64_t largest = (uint64_t{1} << (8 * number.bytes - 1)) - one;         // infinity
  const uint64_t middle = (largest >> (number.fraction + 1)) << number.fraction;  // 1, nearly
  switch (draw % 12) {
    case 0:
      return sign;
    case 1:
      return sign | largest;
    case 2:
      return sign | largest | (bits % (one / 2) + 1);  // signalling
    case 3:
      return sign | largest | one / 2 | bits % (one / 2);
    case 4:
      return sign | bits % one;  // denormal
    case 5:
      return sign | (largest - 1);
    case 6:
      return sign | (one + bits % 4);  // hardly normal
    case 7:
      return sign | middle;
    case 8:
    case 9:
      return sign | (middle + bits % (8 * one));
    default:
      return bits;
  }
}

uint64_t integer(const Number& number, std::mt19937_64* random) {
  const uint64_t draw = (*random)(), bits = (*random)();
  const uint64_t highest = uint64_t{1} << (8 * number.bytes - 1);
  switch (draw % 8) {
    case 0:
      return 0;
    case 1:
      return highest;
    case 2:
      return highest - 1;
    case 3:
      return ~uint64_t{0};
    case 4:
      return bits % 4;
    default:
      return bits;
  }
}

}  // namespace

void fill_at_random(sluice::Type type, void* elements, size_t count, std::mt19937_64* random) {
  const std::vector<Number> numbers = numbers_of(type);
  auto* at = static_cast<unsigned char*>(elements);
  for (size_t i = 0; i < count; ++i) {
    const bool is_common = numbers.size() == 2 && (*random)() % 3 == 0;
    for (const Number& number : numbers) {
      uint64_t bits = number.is_floating ? floating(number, random) : integer(number, random);
      if (is_common) bits %= 3;
      std::memcpy(at, &bits, number.bytes);
      at += number.bytes;
    }
  }
}

}  // namespace test
