// SPDX-License-Identifier: BSD-3-Clause
//
// Compares every kernel of every instruction level with a reference for one element at a time,
// written here from the description in kernels.h.
#include "src/reduce/kernel.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/reduce/isa.h"

namespace sluice {
namespace {

using Memory = unsigned char;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
constexpr bool has_quad = true;
#else
using Quad = long double;
constexpr bool has_quad = false;
#endif

constexpr Op op_at(uint32_t i) { return static_cast<Op>(i); }
constexpr Type type_at(uint32_t i) { return static_cast<Type>(i); }

bool is_between(Type type, Type first, Type last) { return first <= type && type <= last; }
bool is_integer(Type type) { return is_between(type, Type::int8, Type::uint64); }
bool is_floating(Type type) { return is_between(type, Type::float16, Type::float128); }
bool is_complex(Type type) { return is_between(type, Type::complex64, Type::complex256); }
bool is_logical(Type type) { return is_between(type, Type::logical8, Type::logical64); }
bool is_pair(Type type) { return is_between(type, Type::float32_int32, Type::float64_float64); }

// As MPI 4.0, section 6.9.2, defines it.
bool is_defined(Op op, Type type) {
  if (!has_quad && (type == Type::float128 || type == Type::complex256)) return false;
  switch (op) {
    case Op::sum:
    case Op::prod:
      return is_integer(type) || is_floating(type) || is_complex(type);
    case Op::min:
    case Op::max:
      return is_integer(type) || is_floating(type);
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_xor:
      return is_integer(type) || is_logical(type);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return is_integer(type);
    case Op::minloc:
    case Op::maxloc:
      return is_pair(type);
  }
  return false;
}

// References for one element: each gets the addresses of the two operands and of the result.

template <typename T>
T at(const Memory* address, size_t index = 0) {
  T value;
  memcpy(&value, address + index * sizeof(T), sizeof value);
  return value;
}

template <typename T>
void put(Memory* address, T value, size_t index = 0) {
  constexpr bool is_x87 = std::is_same_v<T, long double> && LDBL_MANT_DIG == 64;
  Memory bytes[sizeof(T)] = {};
  memcpy(bytes, &value, is_x87 ? 10 : sizeof value);
  memcpy(address + index * sizeof(T), bytes, sizeof bytes);
}

template <typename T>
void integer_reference(Op op, const Memory* left, const Memory* right, Memory* out) {
  const auto a = static_cast<Wide>(at<T>(left)), b = static_cast<Wide>(at<T>(right));
  const Wide results[] = {
      // the product of two 64-bit numbers may exceed 127 bits; unsigned, so that it wraps
      a + b,
      static_cast<Wide>(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)),
      std::min(a, b),
      std::max(a, b),
      a != 0 && b != 0,
      a != 0 || b != 0,
      (a != 0) != (b != 0),
      a & b,
      a | b,
      a ^ b};
  put(out, static_cast<T>(results[static_cast<size_t>(op)]));
}

template <typename T>
T plus(T a, T b) {
  return a != a ? a : a + b;
}

template <typename T>
T times(T a, T b) {
  return a != a ? a : a * b;
}

template <typename T>
void floating_reference(Op op, const Memory* left, const Memory* right, Memory* out) {
  const T a = at<T>(left), b = at<T>(right);
  if (op == Op::sum) put(out, plus(a, b));
  if (op == Op::prod) put(out, times(a, b));
  if (op == Op::min) put(out, a < b ? a : b);
  if (op == Op::max) put(out, a > b ? a : b);
}

// A 16-bit format with so many bits of fraction and exponent, computed arithmetically.
template <int fraction, int exponent>
struct Narrow {
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr uint16_t infinity = ((1 << exponent) - 1) << fraction;

  static float widen(uint16_t bits) {
    const int magnitude = bits & 0x7fff, e = magnitude >> fraction,
              f = magnitude & ((1 << fraction) - 1);
    if (magnitude > infinity) {  // NaNs: by bits
      const uint32_t wide =
          (bits & 0x8000U) << 16 | 0x7fc00000U | static_cast<uint32_t>(f) << (23 - fraction);
      return at<float>(reinterpret_cast<const Memory*>(&wide));
    }
    float value = std::ldexp(static_cast<float>(e == 0 ? f : f + (1 << fraction)),
                             std::max(e, 1) - bias - fraction);
    if (magnitude == infinity) value = std::numeric_limits<float>::infinity();
    return bits & 0x8000 ? -value : value;
  }

  static uint16_t narrow(float value) {
    const auto wide = at<uint32_t>(reinterpret_cast<const Memory*>(&value));
    const auto sign = static_cast<uint16_t>(wide >> 16 & 0x8000);
    if (std::isnan(value)) {
      return static_cast<uint16_t>(sign | infinity | 1 << (fraction - 1) |
                                   (wide & 0x7fffff) >> (23 - fraction));
    }
    if (value == 0 || std::isinf(value)) return sign | (value == 0 ? 0 : infinity);
    const int e = std::max(std::ilogb(value), 1 - bias);
    const double units =
        std::nearbyint(std::ldexp(std::fabs(static_cast<double>(value)), fraction - e));
    // A carry moves into the exponent by itself.
    const int magnitude = static_cast<int>(units) + ((e + bias - 1) << fraction);
    return static_cast<uint16_t>(sign | std::min<int>(magnitude, infinity));
  }
};

template <typename Format>
void narrow_reference(Op op, const Memory* left, const Memory* right, Memory* out) {
  const float a = Format::widen(at<uint16_t>(left)), b = Format::widen(at<uint16_t>(right));
  if (op == Op::sum) put(out, Format::narrow(plus(a, b)));
  if (op == Op::prod) put(out, Format::narrow(times(a, b)));
  if (op == Op::min) put(out, Format::narrow(a < b ? a : b));
  if (op == Op::max) put(out, Format::narrow(a > b ? a : b));
}

template <typename T>
void complex_reference(Op op, const Memory* left, const Memory* right, Memory* out) {
  const T a = at<T>(left, 0), b = at<T>(left, 1), c = at<T>(right, 0), d = at<T>(right, 1);
  if (op == Op::sum) {
    put(out, plus(a, c), 0);
    put(out, plus(b, d), 1);
  } else {
    const T ac = times(a, c), bd = times(b, d);
    put(out, ac != ac ? ac : ac - bd, 0);
    put(out, plus(times(a, d), times(b, c)), 1);
  }
}

template <typename Value, typename Index>
void pair_reference(Op op, const Memory* left, const Memory* right, Memory* out) {
  struct Pair {
    Value value;
    Index index;
  };
  const auto load = [](const Memory* from) {
    return Pair{at<Value>(from), at<Index>(from + sizeof(Value))};
  };
  const Pair a = load(left), b = load(right);
  const int sign = op == Op::minloc ? 1 : -1;
  const int order = a.value < b.value ? -1 : (a.value > b.value ? 1 : 0);
  const bool takes_left = order * sign < 0 || (order == 0 && a.index <= b.index);
  memcpy(out, takes_left ? left : right, sizeof(Value) + sizeof(Index));
}

using Reference = void (*)(Op, const Memory*, const Memory*, Memory*);

Reference reference_of(Type type) {
  static constexpr Reference table[type_count] = {
      integer_reference<int8_t>,        integer_reference<int16_t>,
      integer_reference<int32_t>,       integer_reference<int64_t>,
      integer_reference<uint8_t>,       integer_reference<uint16_t>,
      integer_reference<uint32_t>,      integer_reference<uint64_t>,
      narrow_reference<Narrow<10, 5>>,  narrow_reference<Narrow<7, 8>>,
      floating_reference<float>,        floating_reference<double>,
      floating_reference<long double>,  floating_reference<Quad>,
      complex_reference<float>,         complex_reference<double>,
      complex_reference<long double>,   complex_reference<Quad>,
      integer_reference<uint8_t>,       integer_reference<uint16_t>,
      integer_reference<uint32_t>,      integer_reference<uint64_t>,
      pair_reference<float, int32_t>,   pair_reference<double, int32_t>,
      pair_reference<int64_t, int32_t>, pair_reference<int32_t, int32_t>,
      pair_reference<int16_t, int32_t>, pair_reference<long double, int32_t>,
      pair_reference<float, float>,     pair_reference<double, double>};
  return table[static_cast<size_t>(type)];
}

// Draws operands: any bytes for integers and padding; for floating point also special values.
class Source {
 public:
  explicit Source(uint64_t seed) : random_(seed) {}

  size_t below(size_t bound) { return random_() % bound; }

  std::vector<Memory> bytes(size_t size) {
    std::vector<Memory> made(size);
    for (Memory& byte : made) byte = static_cast<Memory>(random_());
    return made;
  }

  // n valid elements of the type, from few different values, so that operands are often equal.
  std::vector<Memory> elements(Type type, size_t n) {
    const size_t size = size_of(type);
    std::vector<Memory> made = bytes(n * size);
    for (size_t i = 0; i < n; ++i) element(type, made.data() + i * size);
    return made;
  }

 private:
  void element(Type type, Memory* to) {
    switch (type) {
      case Type::float32:
        return floating<float>(to, 1);
      case Type::float64:
        return floating<double>(to, 1);
      case Type::float80:
        return floating<long double>(to, 1);
      case Type::complex64:
      case Type::float32_float32:
        return floating<float>(to, 2);
      case Type::complex128:
      case Type::float64_float64:
        return floating<double>(to, 2);
      case Type::complex160:
        return floating<long double>(to, 2);
      case Type::float128:
        return floating<Quad>(to, 1);
      case Type::complex256:
        return floating<Quad>(to, 2);
      case Type::float32_int32:
        return floating<float>(to, 1);
      case Type::float64_int32:
        return floating<double>(to, 1);
      case Type::float80_int32:
        return floating<long double>(to, 1);
      default:
        if (below(3) == 0) memset(to, below(2) ? 0xff : 0, size_of(type));
    }
  }

  template <typename T>
  void floating(Memory* to, size_t numbers) {
    for (size_t i = 0; i < numbers; ++i) {
      const T value = number<T>();
      // only the bytes with a value: padding stays random
      constexpr bool is_x87 = std::is_same_v<T, long double> && LDBL_MANT_DIG == 64;
      memcpy(to + i * sizeof(T), &value, is_x87 ? 10 : sizeof value);
    }
  }

  template <typename T>
  T number() {
    if constexpr (!std::numeric_limits<T>::is_specialized) {  // of quadruples the standard knows
                                                              // none
      const auto low = static_cast<T>(number<double>());
      return low + low / 3;
    } else {
      return standard_number<T>();
    }
  }

  template <typename T>
  T standard_number() {
    using Limits = std::numeric_limits<T>;
    const auto ordinary = static_cast<T>(static_cast<int64_t>(random_()) >> 40) / T{1000};
    const T special[] = {T{0},          -T{0},         Limits::infinity(),   -Limits::infinity(),
                         Limits::max(), Limits::min(), Limits::denorm_min(), T{1},
                         -T{1},         a_nan<T>(),    -a_nan<T>()};
    return below(3) == 0 ? special[below(std::size(special))] : ordinary;
  }

  // One of many payloads, which shows which operand's NaN was returned.
  template <typename T>
  T a_nan() {
    const std::string payload = std::to_string(1 + below(1000));
    if constexpr (std::is_same_v<T, float>) return std::nanf(payload.c_str());
    if constexpr (std::is_same_v<T, double>) return std::nan(payload.c_str());
    return static_cast<T>(std::nanl(payload.c_str()));
  }

  std::mt19937_64 random_;
};

uint64_t the_seed() {
  static const uint64_t seed = [] {
    const char* given = getenv("TEST_SEED");
    const uint64_t chosen = given ? strtoull(given, nullptr, 10) : std::random_device()();
    printf("seed %llu (again: TEST_SEED)\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return seed;
}

// Whether the result overwrites an operand.
enum class Alias { none, left, right };

struct Case {
  Isa isa;
  Op op;
  Type type;
  Alias alias;
};

// Memory with the elements at an offset, and guards that must not change.
struct Buffer {
  static constexpr size_t margin = 64;

  Buffer(const std::vector<Memory>& elements, size_t offset)
      : offset(margin + offset), memory(this->offset + elements.size() + margin, 0xa5) {
    if (!elements.empty()) memcpy(data(), elements.data(), elements.size());
  }
  Memory* data() { return memory.data() + offset; }

  size_t offset;
  std::vector<Memory> memory;
};

void compare_once(const Case& each, size_t n, Source* source) {
  const size_t size = size_of(each.type);
  const std::vector<Memory> left = source->elements(each.type, n);
  const std::vector<Memory> right = source->elements(each.type, n);
  std::vector<Memory> expected(n * size);
  for (size_t i = 0; i < n; ++i) {
    reference_of(each.type)(each.op, &left[i * size], &right[i * size], &expected[i * size]);
  }
  Buffer l(left, source->below(64)), r(right, source->below(64));
  Buffer apart(std::vector<Memory>(n * size), source->below(64));
  Buffer& out = each.alias == Alias::left ? l : each.alias == Alias::right ? r : apart;
  const Buffer wanted(expected, out.offset - Buffer::margin);
  find_kernel(each.isa, each.op, each.type)(l.data(), r.data(), out.data(), n, nullptr);
  ASSERT_EQ(out.memory, wanted.memory)
      << to_string(each.op) << " of " << n << " " << to_string(each.type) << ", level "
      << static_cast<int>(each.isa) << ", alias " << static_cast<int>(each.alias) << ", seed "
      << the_seed();
}

TEST(Kernel, EveryOneMatchesTheReference) {
  Source source(the_seed());
  for (const Isa isa : usable_isas()) {
    for (uint32_t op = 0; op < op_count; ++op) {
      for (uint32_t type = 0; type < type_count; ++type) {
        if (!is_defined(op_at(op), type_at(type))) continue;
        for (const Alias alias : {Alias::none, Alias::left, Alias::right}) {
          const Case each{isa, op_at(op), type_at(type), alias};
          for (const size_t n : {0, 1, 2, 3, 7, 31, 33}) compare_once(each, n, &source);
          for (int round = 0; round < 5; ++round) compare_once(each, source.below(1001), &source);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Kernel, ExistsExactlyWhereMpiDefinesTheOperation) {
  for (const Isa isa : usable_isas()) {
    for (uint32_t op = 0; op < op_count; ++op) {
      for (uint32_t type = 0; type < type_count; ++type) {
        EXPECT_EQ(find_kernel(isa, op_at(op), type_at(type)) != nullptr,
                  is_defined(op_at(op), type_at(type)))
            << to_string(op_at(op)) << " " << to_string(type_at(type));
      }
    }
  }
  EXPECT_EQ(find_kernel(Op::bit_and, Type::float32), nullptr);
  EXPECT_EQ(find_kernel(Op::max, Type::complex64), nullptr);
  EXPECT_EQ(find_kernel(Op::sum, Type::float32),
            find_kernel(usable_isas().back(), Op::sum, Type::float32));
}

// Every bit pattern of one operand, each with some patterns of the other.
TEST(Kernel, NarrowFloatsMatchTheReferenceOnEveryPattern) {
  Source source(the_seed());
  std::vector<Memory> left(2 * 65536), right = source.bytes(2 * 65536);
  for (size_t i = 0; i < 65536; ++i) put(left.data(), static_cast<uint16_t>(i), i);
  for (const Type type : {Type::float16, Type::bfloat16}) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      std::vector<Memory> expected(left.size()), out(left.size());
      for (size_t i = 0; i < left.size(); i += 2) {
        reference_of(type)(op, &left[i], &right[i], &expected[i]);
      }
      for (const Isa isa : usable_isas()) {
        find_kernel(isa, op, type)(left.data(), right.data(), out.data(), 65536, nullptr);
        ASSERT_TRUE(out == expected) << to_string(op) << " " << to_string(type) << ", level "
                                     << static_cast<int>(isa) << ", seed " << the_seed();
      }
    }
  }
}

TEST(Kernel, BestUsableLevelFollowsTheProcessor) {
  EXPECT_EQ(usable_isas().front(), Isa::baseline);
#ifdef SLUICE_HAVE_AVX2_KERNELS
  EXPECT_EQ(usable_isas().size(),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") ? 2U : 1U);
#endif
}

template <typename T>
T combined(Op op, Type type, T left, T right) {
  T out;
  find_kernel(op, type)(&left, &right, &out, 1, nullptr);
  return out;
}

TEST(Kernel, IntegersWrapAround) {
  EXPECT_EQ(combined<uint8_t>(Op::sum, Type::uint8, 200, 200), 144);
  EXPECT_EQ(combined<int8_t>(Op::sum, Type::int8, 127, 1), -128);
  EXPECT_EQ(combined<int32_t>(Op::sum, Type::int32, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(combined<uint16_t>(Op::prod, Type::uint16, 65535, 65535), 1);
  EXPECT_EQ(combined<int64_t>(Op::prod, Type::int64, INT64_MIN, -1), INT64_MIN);
}

TEST(Kernel, MinimaOfNansAndZerosKeepToTheRule) {
  const double nan = std::nan("7");
  EXPECT_EQ(combined(Op::min, Type::float64, nan, 1.0), 1.0);
  EXPECT_TRUE(std::isnan(combined(Op::min, Type::float64, 1.0, nan)));
  EXPECT_FALSE(std::signbit(combined(Op::min, Type::float64, -0.0, 0.0)));
  EXPECT_TRUE(std::signbit(combined(Op::max, Type::float64, 0.0, -0.0)));
}

TEST(Kernel, LocationTiesGoToTheLowerIndex) {
  struct Pair {
    double value;
    int32_t index;
  };
  const auto index = [](Op op, Pair left, Pair right) {
    return combined(op, Type::float64_int32, left, right).index;
  };
  EXPECT_EQ(index(Op::minloc, {1, 5}, {1, 3}), 3);
  EXPECT_EQ(index(Op::minloc, {1, 3}, {1, 5}), 3);
  EXPECT_EQ(index(Op::maxloc, {1, 5}, {1, 3}), 3);
  EXPECT_EQ(index(Op::minloc, {1, 5}, {2, 3}), 5);
  EXPECT_EQ(index(Op::maxloc, {1, 5}, {2, 3}), 3);
  EXPECT_EQ(index(Op::maxloc, {std::nan(""), 5}, {2, 3}), 3);
}

TEST(Kernel, SizesAreThoseOfTheTypes) {
  EXPECT_EQ(size_of(Type::int8), 1U);
  EXPECT_EQ(size_of(Type::float64), 8U);
  EXPECT_EQ(size_of(Type::float80), sizeof(long double));
  EXPECT_EQ(size_of(Type::complex128), 16U);
  EXPECT_EQ(size_of(Type::logical32), 4U);
  EXPECT_EQ(size_of(Type::int16_int32), 6U);
  EXPECT_EQ(size_of(Type::float64_int32), 12U);
  EXPECT_EQ(size_of(Type::float80_int32), sizeof(long double) + 4);
}

}  // namespace
}  // namespace sluice
