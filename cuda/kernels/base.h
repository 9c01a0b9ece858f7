// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels stand on: numbers, the place of a thread in its grid, loads and stores. No
// header of CUDA or of the C library. Two compilers read this: clang, which makes PTX of it
// (__CUDA__ is defined then), and the host's compiler, for the stand-in driver
// (tests/cuda/standin), which says what `place`, load_bytes and store_bytes are, and so sees each
// access.
#pragma once

#ifdef __CUDA__
#define SLUICE_DEVICE [[maybe_unused]] static inline __attribute__((device, always_inline))
#define SLUICE_KERNEL extern "C" __attribute__((global, launch_bounds(256))) void
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define SLUICE_DEVICE [[maybe_unused]] static inline
#define SLUICE_KERNEL static void
#define SLUICE_UNROLL
#define SLUICE_NO_UNROLL
#endif

namespace sluice::cuda::kernels {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned int;
using U64 = unsigned long long;
using Vector = U32 __attribute__((vector_size(16)));  // what one load or store moves at most

template <unsigned bytes>
struct Bits;
template <>
struct Bits<1> {
  using Unsigned = U8;
  using Signed = signed char;
};
template <>
struct Bits<2> {
  using Unsigned = U16;
  using Signed = short;
};
template <>
struct Bits<4> {
  using Unsigned = U32;
  using Signed = int;
};
template <>
struct Bits<8> {
  using Unsigned = U64;
  using Signed = long long;
};

#ifdef __CUDA__
SLUICE_DEVICE U32 thread_number() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}
SLUICE_DEVICE U32 thread_count() {
  return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
}

template <typename T>
SLUICE_DEVICE T load(U64 from) {
  return *reinterpret_cast<const __attribute__((address_space(1))) T*>(from);
}
template <typename T>
SLUICE_DEVICE void store(U64 to, T value) {
  *reinterpret_cast<__attribute__((address_space(1))) T*>(to) = value;
}
#else
struct Place {
  U32 thread, threads;  // of all blocks
};
extern Place place;
void load_bytes(U64 from, void* to, unsigned bytes);  // `from` is a multiple of `bytes`
void store_bytes(U64 to, const void* from, unsigned bytes);

SLUICE_DEVICE U32 thread_number() { return place.thread; }
SLUICE_DEVICE U32 thread_count() { return place.threads; }

template <typename T>
SLUICE_DEVICE T load(U64 from) {
  T value;
  load_bytes(from, &value, sizeof value);
  return value;
}
template <typename T>
SLUICE_DEVICE void store(U64 to, T value) {
  store_bytes(to, &value, sizeof value);
}
#endif

// At any address.
template <typename T>
SLUICE_DEVICE T load_anywhere(U64 from) {
  using Whole = typename Bits<sizeof(T)>::Unsigned;
  if (from % sizeof(T) == 0) return load<T>(from);
  U64 bits = 0;
  SLUICE_NO_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i) bits |= static_cast<U64>(load<U8>(from + i)) << (8 * i);
  return __builtin_bit_cast(T, static_cast<Whole>(bits));
}

template <typename T>
SLUICE_DEVICE void store_anywhere(U64 to, T value) {
  using Whole = typename Bits<sizeof(T)>::Unsigned;
  if (to % sizeof(T) == 0) {
    store(to, value);
    return;
  }
  U64 bits = __builtin_bit_cast(Whole, value);
  SLUICE_NO_UNROLL
  for (unsigned i = 0; i < sizeof(T); ++i, bits >>= 8) store(to + i, static_cast<U8>(bits));
}

}  // namespace sluice::cuda::kernels
