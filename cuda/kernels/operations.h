// SPDX-License-Identifier: BSD-3-Clause
//
// The arithmetic of the kernels. Each result has the same bits as the host's kernel on x86-64
// (src/reduce/kernels.h), NaNs included: devices give one NaN for all, so where a result is a NaN,
// its bits are made here. (Hosts of other kinds may give other NaNs to invalid operations, such as
// infinity less infinity.) Nothing is fused and no denormal number is flushed to zero: clang gets
// -ffp-contract=off, and then PTX names the rounding of each operation, which forbids both.
#pragma once

#include "cuda/kernels/base.h"

namespace sluice::cuda::kernels {

template <typename T>
struct Float;
template <>
struct Float<float> {
  static constexpr U32 quiet = 0x400000, invalid = 0xffc00000;
};
template <>
struct Float<double> {
  static constexpr U64 quiet = 0x8000000000000, invalid = 0xfff8000000000000;
};

template <typename T>
SLUICE_DEVICE bool is_nan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

// Of a sum, difference or product, which is a NaN.
template <typename T>
SLUICE_DEVICE T nan_of(T left, T right) {
  using Whole = typename Bits<sizeof(T)>::Unsigned;
  if (is_nan(left)) return left;
  const Whole bits = is_nan(right) ? __builtin_bit_cast(Whole, right) | Float<T>::quiet
                                   : static_cast<Whole>(Float<T>::invalid);
  return __builtin_bit_cast(T, bits);
}

struct FloatSum {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    const T result = left + right;
    return is_nan(result) ? nan_of(left, right) : result;
  }
};

struct FloatDifference {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    const T result = left - right;
    return is_nan(result) ? nan_of(left, right) : result;
  }
};

struct FloatProd {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    const T result = left * right;
    return is_nan(result) ? nan_of(left, right) : result;
  }
};

struct Min {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return left < right ? left : right;
  }
};

struct Max {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return left > right ? left : right;
  }
};

// Integers are unsigned here.
struct IntegerSum {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return static_cast<T>(left + right);
  }
};

struct IntegerProd {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return static_cast<T>(1U * left * right);
  }
};

template <typename Better>
struct Signed {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    using Same = typename Bits<sizeof(T)>::Signed;
    return static_cast<T>(Better::of(static_cast<Same>(left), static_cast<Same>(right)));
  }
};

struct LogicalAnd {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return left != 0 && right != 0 ? 1 : 0;
  }
};

struct LogicalOr {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return (left | right) != 0 ? 1 : 0;
  }
};

struct LogicalXor {
  template <typename T>
  SLUICE_DEVICE T of(T left, T right) {
    return (left != 0) != (right != 0) ? 1 : 0;
  }
};

// IEEE half precision. Devices convert in one instruction each way.
struct Float16 {
  static constexpr U32 infinity = 0x7c00, quiet = 0x200, invalid = 0xfe00;
#ifdef __CUDA__
  SLUICE_DEVICE float widen(U16 half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
  }
  SLUICE_DEVICE U16 narrow(float value) {
    U16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
  }
#else
  // Powers of two scale exactly, so that a float's own range and rounding serve. (2^112 takes the
  // exponent of a half to that of a float.)
  SLUICE_DEVICE float widen(U16 half) {
    const U32 magnitude = half & 0x7fffU, sign = (half & 0x8000U) << 16;
    const float value = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
    const U32 bits =
        magnitude >= infinity ? 0x7f800000U | magnitude << 13 : __builtin_bit_cast(U32, value);
    return __builtin_bit_cast(float, bits | sign);
  }
  // To add 2^k rounds to multiples of 2^(k - 23), ties to even: the half's last place.
  SLUICE_DEVICE U16 narrow(float value) {
    const auto bits = __builtin_bit_cast(U32, value);
    const U32 sign = bits >> 16 & 0x8000U, exponent = bits >> 23 & 0xffU;
    const auto magnitude = __builtin_bit_cast(float, bits & 0x7fffffffU);
    if (!(magnitude < 0x1p16F)) return static_cast<U16>(sign | infinity);
    const U32 least = exponent < 113 ? 113 : exponent;  // of the exponents of normal halves
    const float large = __builtin_bit_cast(float, (least + 13) << 23);
    const float rounded = (magnitude + large) - large;
    const U32 scaled = __builtin_bit_cast(U32, rounded * 0x1p-112F);
    return static_cast<U16>(sign | scaled >> 13);
  }
#endif
};

// The upper half of a float.
struct BFloat16 {
  static constexpr U32 infinity = 0x7f80, quiet = 0x40, invalid = 0xffc0;
  SLUICE_DEVICE float widen(U16 half) {
    return __builtin_bit_cast(float, static_cast<U32>(half) << 16);
  }
  SLUICE_DEVICE U16 narrow(float value) {
    const auto bits = __builtin_bit_cast(U32, value);
    return static_cast<U16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// In float, rounded once. NaNs become quiet and keep their other bits.
template <typename Operation, typename Format>
struct Narrow {
  SLUICE_DEVICE bool is_nan_of(U16 half) { return (half & 0x7fffU) > Format::infinity; }
  SLUICE_DEVICE U16 of(U16 left, U16 right) {
    const float result = Operation::of(Format::widen(left), Format::widen(right));
    if (!is_nan(result)) return Format::narrow(result);
    if (Operation::selects) return static_cast<U16>(right | Format::quiet);
    const U32 either = is_nan_of(left) ? left : right;
    const bool is_invalid = !is_nan_of(left) && !is_nan_of(right);
    return static_cast<U16>(is_invalid ? Format::invalid : either | Format::quiet);
  }
};

// The operations that these are made of, without NaNs of their own. selects: the result is an
// operand (if it is a NaN, the right one).
struct PlainSum {
  static constexpr bool selects = false;
  SLUICE_DEVICE float of(float left, float right) { return left + right; }
};
struct PlainProd {
  static constexpr bool selects = false;
  SLUICE_DEVICE float of(float left, float right) { return left * right; }
};
struct PlainMin : Min {
  static constexpr bool selects = true;
};
struct PlainMax : Max {
  static constexpr bool selects = true;
};

template <typename T>
struct Complex {
  T real, imaginary;
};

struct ComplexProd {
  template <typename T>
  SLUICE_DEVICE Complex<T> of(Complex<T> left, Complex<T> right) {
    const T ac = FloatProd::of(left.real, right.real);
    const T bd = FloatProd::of(left.imaginary, right.imaginary);
    const T ad = FloatProd::of(left.real, right.imaginary);
    const T bc = FloatProd::of(left.imaginary, right.real);
    return {FloatDifference::of(ac, bd), FloatSum::of(ad, bc)};
  }
};

// The pair with the better value; if neither is better (NaNs too), that with the lower index.
template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

template <bool least>
struct Locate {
  template <typename P>
  SLUICE_DEVICE P of(const P& left, const P& right) {
    const bool is_better = least ? left.value < right.value : left.value > right.value;
    const bool is_worse = least ? right.value < left.value : right.value > left.value;
    const bool is_left = is_better || (!is_worse && left.index <= right.index);
    return {is_left ? left.value : right.value, is_left ? left.index : right.index};
  }
};

}  // namespace sluice::cuda::kernels
