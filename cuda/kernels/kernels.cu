// SPDX-License-Identifier: BSD-3-Clause
//
// All kernels. SLUICE_MODULE_name says which of them a compilation is about: a device compiles a
// module's kernels when it is loaded, so modules are small, one for elements that belong together.
// The script `compile` beside this makes PTX of it.
#include "cuda/kernels/reduce.h"

namespace sluice::cuda::kernels {
namespace {

struct Integers {
  template <typename Item>
  SLUICE_DEVICE void apply(Action action, Item* left, const Item& right) {
    switch (action) {
      case Action::sum:
        return each<IntegerSum>(left, right);
      case Action::prod:
        return each<IntegerProd>(left, right);
      case Action::min:
        return each<Signed<Min>>(left, right);
      case Action::max:
        return each<Signed<Max>>(left, right);
      case Action::unsigned_min:
        return each<Min>(left, right);
      case Action::unsigned_max:
        return each<Max>(left, right);
      case Action::logical_and:
        return each<LogicalAnd>(left, right);
      case Action::logical_or:
        return each<LogicalOr>(left, right);
      case Action::logical_xor:
        return each<LogicalXor>(left, right);
      default:
        return apply_to_bits(action, left, right);
    }
  }
  template <typename Item>
  SLUICE_DEVICE void apply_to_bits(Action action, Item* left, const Item& right) {
    const auto l = __builtin_bit_cast(Vector, *left), r = __builtin_bit_cast(Vector, right);
    const Vector result = action == Action::bit_and  ? l & r
                          : action == Action::bit_or ? l | r
                                                     : l ^ r;
    *left = __builtin_bit_cast(Item, result);
  }
};

struct Floats {
  template <typename Item>
  SLUICE_DEVICE void apply(Action action, Item* left, const Item& right) {
    switch (action) {
      case Action::sum:
        return each<FloatSum>(left, right);
      case Action::prod:
        return each<FloatProd>(left, right);
      case Action::min:
        return each<Min>(left, right);
      default:
        return each<Max>(left, right);
    }
  }
};

template <typename Format>
struct NarrowFloats {
  template <typename Item>
  SLUICE_DEVICE void apply(Action action, Item* left, const Item& right) {
    switch (action) {
      case Action::sum:
        return each<Narrow<PlainSum, Format>>(left, right);
      case Action::prod:
        return each<Narrow<PlainProd, Format>>(left, right);
      case Action::min:
        return each<Narrow<PlainMin, Format>>(left, right);
      default:
        return each<Narrow<PlainMax, Format>>(left, right);
    }
  }
};

struct ComplexProds {
  template <typename Item>
  SLUICE_DEVICE void apply(Action, Item* left, const Item& right) {
    each<ComplexProd>(left, right);
  }
};

struct Pairs {
  template <typename Item>
  SLUICE_DEVICE void apply(Action action, Item* left, const Item& right) {
    action == Action::min ? each<Locate<true>>(left, right) : each<Locate<false>>(left, right);
  }
};

template <typename T>
SLUICE_DEVICE void copy_unit(U64 from, U64 to) {
  store(to, load<T>(from));
}

SLUICE_DEVICE void copy_unit(U32 unit, U64 from, U64 to) {
  switch (unit) {
    case 1:
      return copy_unit<U8>(from, to);
    case 2:
      return copy_unit<U16>(from, to);
    case 4:
      return copy_unit<U32>(from, to);
    case 8:
      return copy_unit<U64>(from, to);
    default:
      return copy_unit<Vector>(from, to);
  }
}

SLUICE_DEVICE void copy_all(const CopyRows& call) {
  for (U32 i = thread_number(); i < call.units; i += thread_count()) {
    const U32 row = i / call.units_a_row;
    const U64 at = static_cast<U64>(i - row * call.units_a_row) * call.unit;
    copy_unit(call.unit, call.from + static_cast<U64>(row * call.from_stride) + at,
              call.to + static_cast<U64>(row * call.to_stride) + at);
  }
}

SLUICE_DEVICE void copy_all(const CopyBlocks& call) {
  constexpr U32 warp = 32;
  for (U32 i = thread_number() / warp; i < call.blocks; i += thread_count() / warp) {
    const CopyBlock& block = call.block[i];
    for (U32 unit = thread_number() % warp; unit < block.units; unit += warp) {
      const U64 at = static_cast<U64>(unit) * block.unit;
      copy_unit(block.unit, block.from + at, block.to + at);
    }
  }
}

}  // namespace

#define SLUICE_REDUCE(name, family, ...) \
  SLUICE_KERNEL name(const Reduce call) { reduce<family, __VA_ARGS__>(call); }

#ifdef SLUICE_MODULE_int8
SLUICE_REDUCE(reduce_int8, Integers, U8)
#endif
#ifdef SLUICE_MODULE_int16
SLUICE_REDUCE(reduce_int16, Integers, U16)
#endif
#ifdef SLUICE_MODULE_int32
SLUICE_REDUCE(reduce_int32, Integers, U32)
#endif
#ifdef SLUICE_MODULE_int64
SLUICE_REDUCE(reduce_int64, Integers, U64)
#endif
#ifdef SLUICE_MODULE_float16
SLUICE_REDUCE(reduce_float16, NarrowFloats<Float16>, U16)
#endif
#ifdef SLUICE_MODULE_bfloat16
SLUICE_REDUCE(reduce_bfloat16, NarrowFloats<BFloat16>, U16)
#endif
#ifdef SLUICE_MODULE_float32
SLUICE_REDUCE(reduce_float32, Floats, float)
SLUICE_REDUCE(reduce_complex64, ComplexProds, Complex<float>)
#endif
#ifdef SLUICE_MODULE_float64
SLUICE_REDUCE(reduce_float64, Floats, double)
SLUICE_REDUCE(reduce_complex128, ComplexProds, Complex<double>)
#endif
#ifdef SLUICE_MODULE_pairs
SLUICE_REDUCE(reduce_float32_int32, Pairs, Pair<float, int>)
SLUICE_REDUCE(reduce_float64_int32, Pairs, Pair<double, int>)
SLUICE_REDUCE(reduce_int64_int32, Pairs, Pair<long long, int>)
SLUICE_REDUCE(reduce_int32_int32, Pairs, Pair<int, int>)
SLUICE_REDUCE(reduce_int16_int32, Pairs, Pair<short, int>)
SLUICE_REDUCE(reduce_float32_float32, Pairs, Pair<float, float>)
SLUICE_REDUCE(reduce_float64_float64, Pairs, Pair<double, double>)
#endif
#ifdef SLUICE_MODULE_copy
SLUICE_KERNEL copy_rows(const CopyRows call) { copy_all(call); }
SLUICE_KERNEL copy_blocks(const CopyBlocks call) { copy_all(call); }
#endif

}  // namespace sluice::cuda::kernels
