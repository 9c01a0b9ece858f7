// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin_nccl/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace standin_nccl {
namespace {

// Sixteen bits as they are stored; computed with as float.
struct Half {
  uint16_t bits;
  float value() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                            : exponent == 0
                                ? std::ldexp(static_cast<float>(fraction), -24)
                                : std::ldexp(static_cast<float>(fraction | 1024), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
  // To the nearest, ties to even: nearbyint rounds so.
  static Half of(float value) {
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) return {0x7e00};
    if (magnitude >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
    const int exponent = magnitude < 0x1p-14F ? -14 : std::ilogb(magnitude);
    const auto fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return {static_cast<uint16_t>(sign + (((exponent + 14) << 10) + fraction))};
  }
};

struct Brain {
  uint16_t bits;
  float value() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static Brain of(float value) {
    const auto all = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return {static_cast<uint16_t>(all >> 16 | 0x40)};
    return {static_cast<uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16)};
  }
};

// Integers wrap around.
template <typename Value>
Value apply(ncclRedOp_t operation, Value a, Value b) {
  using Wide = std::conditional_t<std::is_integral_v<Value>, uint64_t, Value>;
  const auto wide_a = static_cast<Wide>(a);
  const auto wide_b = static_cast<Wide>(b);
  switch (operation) {
    case ncclSum:
      return static_cast<Value>(wide_a + wide_b);
    case ncclProd:
      return static_cast<Value>(wide_a * wide_b);
    case ncclMax:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

Half apply(ncclRedOp_t operation, Half a, Half b) {
  return Half::of(apply(operation, a.value(), b.value()));
}

Brain apply(ncclRedOp_t operation, Brain a, Brain b) {
  return Brain::of(apply(operation, a.value(), b.value()));
}

template <typename Value>
void combine_as(ncclRedOp_t operation, size_t count, std::byte* into, const std::byte* from) {
  for (size_t i = 0; i < count; ++i) {
    Value a, b;
    std::memcpy(&a, into + i * sizeof a, sizeof a);
    std::memcpy(&b, from + i * sizeof b, sizeof b);
    a = apply(operation, a, b);
    std::memcpy(into + i * sizeof a, &a, sizeof a);
  }
}

using Combine = void(ncclRedOp_t, size_t, std::byte*, const std::byte*);
struct Row {
  size_t bytes;
  Combine* combine;
};

template <typename Value>
constexpr Row row_of() {
  return {sizeof(Value), combine_as<Value>};
}

// By ncclDataType_t.
constexpr Row rows[] = {
    row_of<int8_t>(),   row_of<uint8_t>(), row_of<int32_t>(), row_of<uint32_t>(), row_of<int64_t>(),
    row_of<uint64_t>(), row_of<Half>(),    row_of<float>(),   row_of<double>(),   row_of<Brain>()};

}  // namespace

size_t size_of(ncclDataType_t type) { return type < std::size(rows) ? rows[type].bytes : 0; }

bool is_operation(ncclRedOp_t operation) { return operation <= ncclMin; }

void combine(ncclDataType_t type, ncclRedOp_t operation, size_t count, std::byte* into,
             const std::byte* from) {
  rows[type].combine(operation, count, into, from);
}

}  // namespace standin_nccl
