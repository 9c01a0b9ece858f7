// SPDX-License-Identifier: BSD-3-Clause
#include "src/reduce/kernel.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <iterator>

#include "src/reduce/isa.h"

namespace sluice {
namespace {

struct TypeRow {
  size_t size;
  std::string_view name;
};

// In the order of enum Type.
constexpr TypeRow type_rows[type_count] = {
    {1, "int8"},
    {2, "int16"},
    {4, "int32"},
    {8, "int64"},
    {1, "uint8"},
    {2, "uint16"},
    {4, "uint32"},
    {8, "uint64"},
    {2, "float16"},
    {2, "bfloat16"},
    {4, "float32"},
    {8, "float64"},
    {sizeof(long double), "float80"},
    {16, "float128"},
    {8, "complex64"},
    {16, "complex128"},
    {2 * sizeof(long double), "complex160"},
    {32, "complex256"},
    {1, "logical8"},
    {2, "logical16"},
    {4, "logical32"},
    {8, "logical64"},
    {8, "float32_int32"},
    {12, "float64_int32"},
    {12, "int64_int32"},
    {8, "int32_int32"},
    {6, "int16_int32"},
    {sizeof(long double) + 4, "float80_int32"},
    {8, "float32_float32"},
    {16, "float64_float64"},
};

// In the order of enum Op.
constexpr std::string_view op_names[op_count] = {
    "sum",         "prod",    "min",    "max",     "logical_and", "logical_or",
    "logical_xor", "bit_and", "bit_or", "bit_xor", "minloc",      "maxloc",
};

// Best level last.
constexpr Isa isas[] = {
    Isa::baseline,
#ifdef SLUICE_HAVE_AVX2_KERNELS
    Isa::avx2,
#endif
};

#ifdef SLUICE_HAVE_AVX2_KERNELS
// Some compilers' __builtin_cpu_supports does not know f16c.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

bool is_usable(Isa isa) {
#ifdef SLUICE_HAVE_AVX2_KERNELS
  if (isa == Isa::avx2) {
    return __builtin_cpu_supports("avx2") && has_f16c();
  }
#endif
  return isa == Isa::baseline;
}

const KernelTable& kernels_of([[maybe_unused]] Isa isa) {
#ifdef SLUICE_HAVE_AVX2_KERNELS
  if (isa == Isa::avx2) return avx2_kernels;
#endif
  return baseline_kernels;
}

}  // namespace

size_t size_of(Type type) { return type_rows[static_cast<size_t>(type)].size; }
std::string_view to_string(Type type) { return type_rows[static_cast<size_t>(type)].name; }
std::string_view to_string(Op op) { return op_names[static_cast<size_t>(op)]; }

std::span<const Isa> usable_isas() {
  static const Isa* const end = std::find_if_not(std::begin(isas), std::end(isas), is_usable);
  return {isas, end};
}

ReduceKernel find_kernel(Isa isa, Op op, Type type) {
  return kernels_of(isa).at[static_cast<size_t>(op)][static_cast<size_t>(type)];
}

ReduceKernel find_kernel(Op op, Type type) { return find_kernel(usable_isas().back(), op, type); }

}  // namespace sluice
