// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of the host kernels, in plain C++ that the compiler vectorises for the target in force
// at the include. Each kernels_*.cc includes this file once; no other file does. Everything has
// internal linkage, so that the linker cannot merge code of different levels.
//
// Results, bit for bit the same on every level:
//   integers      wrap around (computed unsigned)
//   logical ops   1 or 0; an operand is true if it is not zero
//   float sum     left if it is a NaN, else left + right; prod likewise. (Otherwise the compiler's
//                 operand order would decide which of two NaNs is returned.)
//   float min     left < right ? left : right; max with >. So the right operand is returned if
//                 either is a NaN, or if they are zeros of different sign.
//   16-bit floats computed in float32, then rounded once to nearest, ties to even; NaNs become
//                 quiet and keep the payload bits that fit
//   complex sum   by component; prod (ac - bd, ad + bc), each operation as above, nothing fused
//   minloc        the pair with the smaller value; if neither is smaller (NaNs too), the pair
//                 with the lower index
// The six padding bytes of an x87 long double are set to zero.
#pragma once

#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/reduce/isa.h"

namespace sluice {
namespace {

using Memory = unsigned char;

template <typename T>
inline constexpr bool is_floating = std::is_floating_point_v<T>;
#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
template <>
inline constexpr bool is_floating<Quad> = true;
#endif
#ifdef __F16C__
using Floats = float __attribute__((vector_size(32)));
template <>
inline constexpr bool is_floating<Floats> = true;
#endif

// For vectors: lane by lane.
template <typename T>
auto is_nan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

// Unaligned.
template <typename T>
T load(const Memory* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(Memory* to, T value) {
  memcpy(to, &value, sizeof value);
}

template <>
[[maybe_unused]] void store(Memory* to, long double value) {
  constexpr size_t used = LDBL_MANT_DIG == 64 ? 10 : sizeof value;
  memset(to, 0, sizeof value);
  memcpy(to, &value, used);
}

struct Sum {
  template <typename T>
  static T of(T left, T right) {
    const T sum = static_cast<T>(left + right);
    if constexpr (is_floating<T>) return is_nan(left) ? left : sum;
    return sum;
  }
};

struct Prod {
  template <typename T>
  static T of(T left, T right) {
    if constexpr (is_floating<T>) {
      const T product = left * right;
      return is_nan(left) ? left : product;
    } else {
      return static_cast<T>(1U * left * right);  // 1U: uint16_t would become int and overflow
    }
  }
};

struct Min {
  template <typename T>
  static T of(T left, T right) {
    return left < right ? left : right;
  }
};

struct Max {
  template <typename T>
  static T of(T left, T right) {
    return left > right ? left : right;
  }
};

struct LogicalAnd {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>((left != 0) & (right != 0));
  }
};

struct LogicalOr {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>((left | right) != 0);
  }
};

struct LogicalXor {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>((left != 0) ^ (right != 0));
  }
};

struct BitAnd {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>(left & right);
  }
};

struct BitOr {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>(left | right);
  }
};

struct BitXor {
  template <typename T>
  static T of(T left, T right) {
    return static_cast<T>(left ^ right);
  }
};

// An element consists of `parts` numbers of type T, combined independently.
template <typename Operation, typename T, size_t parts = 1>
void combine(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
  n *= parts;
#pragma GCC ivdep  // `out` equals `left` or `right`, or overlaps neither
  for (size_t i = 0; i < n; ++i) {
    const size_t at = i * sizeof(T);
    store(o + at, Operation::of(load<T>(l + at), load<T>(r + at)));
  }
}

// IEEE half precision in integer arithmetic, except for subnormal halves: there a float addition
// does the rounding (after F. Giesen's public-domain notes on half-float conversion, 2012). Gives
// the same bits as the F16C instructions.
struct Float16 {
  static float widen(uint16_t half) {
    constexpr uint32_t rebias = 112U << 23, least_normal = 113U << 23, all_ones = 0x7c00U << 13;
    const uint32_t magnitude = (half & 0x7fffU) << 13, exponent = magnitude & all_ones;
    const float small = __builtin_bit_cast(float, magnitude + least_normal) -
                        __builtin_bit_cast(float, least_normal);
    const uint32_t normal = magnitude + (exponent == all_ones ? 2 * rebias : rebias);
    const uint32_t bits = exponent == 0 ? __builtin_bit_cast(uint32_t, small) : normal;
    return __builtin_bit_cast(float, bits | (half & 0x8000U) << 16);
  }
  static uint16_t narrow(float value) {
    constexpr uint32_t infinity = 255U << 23, too_large = 143U << 23, least_normal = 113U << 23;
    constexpr uint32_t rebias = 112U << 23, one_half = 126U << 23;
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t magnitude = bits & 0x7fffffffU;
    const float shifted =
        __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, one_half);
    const uint32_t small = __builtin_bit_cast(uint32_t, shifted) - one_half;
    const uint32_t normal = (magnitude - rebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const uint32_t special =
        magnitude > infinity ? 0x7e00U | (magnitude >> 13 & 0x3ffU) : uint32_t{0x7c00};
    const uint32_t finite = magnitude < least_normal ? small : normal;
    return static_cast<uint16_t>((magnitude >= too_large ? special : finite) |
                                 (bits >> 16 & 0x8000U));
  }
};

struct BFloat16 {
  static float widen(uint16_t half) { return __builtin_bit_cast(float, uint32_t{half} << 16); }
  static uint16_t narrow(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const bool nan = (bits & 0x7fffffffU) > 255U << 23;
    return static_cast<uint16_t>(nan ? bits >> 16 | 0x40U : rounded);
  }
};

template <typename Operation, typename Format>
void combine_narrow(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
#pragma GCC ivdep
  for (size_t at = 0; at < n * sizeof(uint16_t); at += sizeof(uint16_t)) {
    const float a = Format::widen(load<uint16_t>(l + at));
    const float b = Format::widen(load<uint16_t>(r + at));
    store(o + at, Format::narrow(Operation::of(a, b)));
  }
}

#ifdef __F16C__
template <typename Operation>
void combine_eight(const Memory* left, const Memory* right, Memory* out) {
  const Floats a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(left)));
  const Floats b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(right)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm256_cvtps_ph(Operation::of(a, b), _MM_FROUND_TO_NEAREST_INT));
}

// Uses the F16C conversion instructions, which the compiler does not generate by itself.
template <typename Operation>
void combine_float16(const void* left, const void* right, void* out, size_t n, const void*) {
  constexpr size_t eight = 8 * sizeof(uint16_t);
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
  size_t rest = n * sizeof(uint16_t);
  for (; rest >= eight; rest -= eight, l += eight, r += eight, o += eight) {
    combine_eight<Operation>(l, r, o);
  }
  Memory last[2][eight] = {};
  memcpy(last[0], l, rest);
  memcpy(last[1], r, rest);
  combine_eight<Operation>(last[0], last[1], last[0]);
  memcpy(o, last[0], rest);
}
#else
template <typename Operation>
constexpr ReduceKernel combine_float16 = combine_narrow<Operation, Float16>;
#endif

template <typename T>
void complex_prod(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const size_t real = i * 2 * sizeof(T), imaginary = real + sizeof(T);
    const T a = load<T>(l + real), b = load<T>(l + imaginary);
    const T c = load<T>(r + real), d = load<T>(r + imaginary);
    const T ac = Prod::of(a, c), bd = Prod::of(b, d);
    store(o + real, __builtin_isnan(ac) ? ac : ac - bd);
    store(o + imaginary, Sum::of(Prod::of(a, d), Prod::of(b, c)));
  }
}

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

// Whether the left pair wins; Better is Min or Max.
template <typename Better, typename P>
bool left_wins(const P& left, const P& right) {
  constexpr bool least = std::is_same_v<Better, Min>;
  const bool left_better = least ? left.value < right.value : left.value > right.value;
  const bool right_better = least ? right.value < left.value : right.value > left.value;
  return left_better || (!right_better && left.index <= right.index);
}

template <typename Value, typename Index>
Pair<Value, Index> load_pair(const Memory* from) {
  return {load<Value>(from), load<Index>(from + sizeof(Value))};
}

template <typename Better, typename Value, typename Index>
void locate(const void* left, const void* right, void* out, size_t n, const void*) {
  constexpr size_t size = sizeof(Value) + sizeof(Index);
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
  for (size_t at = 0; at < n * size; at += size) {
    const bool from_left =
        left_wins<Better>(load_pair<Value, Index>(l + at), load_pair<Value, Index>(r + at));
    memmove(o + at, (from_left ? l : r) + at, size);
  }
}

constexpr void set(KernelTable& table, Op op, Type type, ReduceKernel kernel) {
  table.at[static_cast<size_t>(op)][static_cast<size_t>(type)] = kernel;
}

template <typename T>
constexpr void add_logical(KernelTable& table, Type type) {
  set(table, Op::logical_and, type, combine<LogicalAnd, T>);
  set(table, Op::logical_or, type, combine<LogicalOr, T>);
  set(table, Op::logical_xor, type, combine<LogicalXor, T>);
}

template <typename T>
constexpr void add_integer(KernelTable& table, Type type) {
  using Unsigned = std::make_unsigned_t<T>;
  set(table, Op::sum, type, combine<Sum, Unsigned>);
  set(table, Op::prod, type, combine<Prod, Unsigned>);
  set(table, Op::min, type, combine<Min, T>);
  set(table, Op::max, type, combine<Max, T>);
  add_logical<Unsigned>(table, type);
  set(table, Op::bit_and, type, combine<BitAnd, Unsigned>);
  set(table, Op::bit_or, type, combine<BitOr, Unsigned>);
  set(table, Op::bit_xor, type, combine<BitXor, Unsigned>);
}

template <typename T>
constexpr void add_floating(KernelTable& table, Type type, Type complex_type) {
  set(table, Op::sum, type, combine<Sum, T>);
  set(table, Op::prod, type, combine<Prod, T>);
  set(table, Op::min, type, combine<Min, T>);
  set(table, Op::max, type, combine<Max, T>);
  set(table, Op::sum, complex_type, combine<Sum, T, 2>);
  set(table, Op::prod, complex_type, complex_prod<T>);
}

constexpr void add_narrow(KernelTable& table) {
  set(table, Op::sum, Type::float16, combine_float16<Sum>);
  set(table, Op::prod, Type::float16, combine_float16<Prod>);
  set(table, Op::min, Type::float16, combine_float16<Min>);
  set(table, Op::max, Type::float16, combine_float16<Max>);
  set(table, Op::sum, Type::bfloat16, combine_narrow<Sum, BFloat16>);
  set(table, Op::prod, Type::bfloat16, combine_narrow<Prod, BFloat16>);
  set(table, Op::min, Type::bfloat16, combine_narrow<Min, BFloat16>);
  set(table, Op::max, Type::bfloat16, combine_narrow<Max, BFloat16>);
}

template <typename Value, typename Index>
constexpr void add_pair(KernelTable& table, Type type) {
  set(table, Op::minloc, type, locate<Min, Value, Index>);
  set(table, Op::maxloc, type, locate<Max, Value, Index>);
}

constexpr KernelTable make_kernels() {
  KernelTable table{};
  add_integer<int8_t>(table, Type::int8);
  add_integer<int16_t>(table, Type::int16);
  add_integer<int32_t>(table, Type::int32);
  add_integer<int64_t>(table, Type::int64);
  add_integer<uint8_t>(table, Type::uint8);
  add_integer<uint16_t>(table, Type::uint16);
  add_integer<uint32_t>(table, Type::uint32);
  add_integer<uint64_t>(table, Type::uint64);
  add_narrow(table);
  add_floating<float>(table, Type::float32, Type::complex64);
  add_floating<double>(table, Type::float64, Type::complex128);
  add_floating<long double>(table, Type::float80, Type::complex160);
#ifdef __SIZEOF_FLOAT128__
  add_floating<Quad>(table, Type::float128, Type::complex256);
#endif
  add_logical<uint8_t>(table, Type::logical8);
  add_logical<uint16_t>(table, Type::logical16);
  add_logical<uint32_t>(table, Type::logical32);
  add_logical<uint64_t>(table, Type::logical64);
  add_pair<float, int32_t>(table, Type::float32_int32);
  add_pair<double, int32_t>(table, Type::float64_int32);
  add_pair<int64_t, int32_t>(table, Type::int64_int32);
  add_pair<int32_t, int32_t>(table, Type::int32_int32);
  add_pair<int16_t, int32_t>(table, Type::int16_int32);
  add_pair<long double, int32_t>(table, Type::float80_int32);
  add_pair<float, float>(table, Type::float32_float32);
  add_pair<double, double>(table, Type::float64_float64);
  return table;
}

}  // namespace
}  // namespace sluice
