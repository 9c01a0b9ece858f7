// SPDX-License-Identifier: BSD-3-Clause
//
// The reduction contract: how two operands of one element type are combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// Element types that have host kernels. (A language binding maps its datatypes to these.)
enum class Type : uint8_t {
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,   // IEEE half precision
  bfloat16,  // the upper half of a float32
  float32,
  float64,
  float80,   // x87 long double, stored in 16 bytes
  float128,  // IEEE quadruple, if the compiler supports it: Fortran's REAL(16)
  complex64,
  complex128,
  complex160,
  complex256,  // the complex types are pairs of float32, float64, float80, float128
  // C and C++ bool, Fortran LOGICAL, by size: zero is false
  logical8,
  logical16,
  logical32,
  logical64,
  // pairs for minloc and maxloc, without the padding of C structures
  float32_int32,
  float64_int32,
  int64_int32,
  int32_int32,
  int16_int32,
  float80_int32,
  float32_float32,
  float64_float64,  // Fortran's 2REAL and 2DOUBLE PRECISION
};
inline constexpr uint32_t type_count = 30;

enum class Op : uint8_t {
  sum,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  minloc,
  maxloc,
};
inline constexpr uint32_t op_count = 12;

constexpr bool is_wide_integer(Type type) {
  return type == Type::int32 || type == Type::int64 || type == Type::uint32 || type == Type::uint64;
}

size_t size_of(Type type);
std::string_view to_string(Type type);
std::string_view to_string(Op op);

// out[i] = left[i] (op) right[i] for n elements. `out` may equal `left` or `right`, but must not
// overlap them partially. Pointers need no alignment. `context` is Reduction::context.
using ReduceKernel = void (*)(const void* left, const void* right, void* out, size_t n,
                              const void* context);

// What the host's kernel computes, for devices and NCCL, which compute it too.
struct Arithmetic {
  Type type;
  Op op;
};

// What an Execution needs to know about an operation.
struct Reduction {
  ReduceKernel kernel = nullptr;
  const void* context = nullptr;  // passed to the kernel; outlives the call
  bool commutative = true;
  std::optional<Arithmetic> arithmetic = {};  // unset: a user-defined operation
};

// The host kernel; nullptr if MPI does not define the operation on that type (section 6.9.2), or if
// the compiler lacks the type.
ReduceKernel find_kernel(Op op, Type type);

}  // namespace sluice
