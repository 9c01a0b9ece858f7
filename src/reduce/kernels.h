// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of the host kernels, as plain C++ that the compiler vectorises for whatever target is
// in force where this is included: once in each of kernels_*.cc, nowhere else. Everything has
// internal linkage, so that no level's code can stand in for another's.
//
// What is computed, bit for bit, on every level:
//   integers      wrap around (computed unsigned)
//   logical ops   1 or 0, an operand being true where it is not zero
//   float sum     left if it is a NaN, else left + right; prod likewise. (Which of two NaNs an
//                 addition returns depends on the order that the compiler gave the operands.)
//   float min     left < right ? left : right, and max with >. So a NaN yields the right operand,
//   as
//                 do zeros of different sign.
//   complex sum   by component; prod (ac - bd, ad + bc), each operation as above, nothing fused
//   minloc        the pair of the lesser value; of the lower index where neither is less (NaNs
//   too);
//                 copied whole, with its padding
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

#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
template <typename T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || std::is_same_v<T, Quad>;
#else
template <typename T>
inline constexpr bool is_floating = std::is_floating_point_v<T>;
#endif

// No alignment is assumed.
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
    if constexpr (is_floating<T>) return __builtin_isnan(left) ? left : sum;
    return sum;
  }
};

struct Prod {
  template <typename T>
  static T of(T left, T right) {
    if constexpr (is_floating<T>) {
      const T product = left * right;
      return __builtin_isnan(left) ? left : product;
    } else {
      return static_cast<T>(1U * left * right);  // 1U: a product of uint16_t must not become an int
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

// `parts` numbers of type T make an element, each combined alone.
template <typename Operation, typename T, size_t parts = 1>
void combine(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
  n *= parts;
#pragma GCC ivdep  // `out` is `left` or `right`, or apart from both
  for (size_t i = 0; i < n; ++i) {
    const size_t at = i * sizeof(T);
    store(o + at, Operation::of(load<T>(l + at), load<T>(r + at)));
  }
}

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

// Whether the left pair wins: Better is Min or Max.
template <typename Better, typename P>
bool left_wins(const P& left, const P& right) {
  constexpr bool least = std::is_same_v<Better, Min>;
  const bool left_better = least ? left.value < right.value : left.value > right.value;
  const bool right_better = least ? right.value < left.value : right.value > left.value;
  return left_better || (!right_better && left.index <= right.index);
}

template <typename Better, typename P>
void locate(const void* left, const void* right, void* out, size_t n, const void*) {
  const auto* l = static_cast<const Memory*>(left);
  const auto* r = static_cast<const Memory*>(right);
  auto* o = static_cast<Memory*>(out);
  for (size_t at = 0; at < n * sizeof(P); at += sizeof(P)) {
    const bool from_left = left_wins<Better>(load<P>(l + at), load<P>(r + at));
    memmove(o + at, (from_left ? l : r) + at, sizeof(P));
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

template <typename Value, typename Index>
constexpr void add_pair(KernelTable& table, Type type) {
  set(table, Op::minloc, type, locate<Min, Pair<Value, Index>>);
  set(table, Op::maxloc, type, locate<Max, Pair<Value, Index>>);
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
